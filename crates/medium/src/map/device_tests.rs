use super::*;
use std::os::unix::fs::symlink;

/// A sysfs of our own, shaped like a machine with one NVDIMM region.
struct Sysfs(tempfile::TempDir);

impl Sysfs {
    fn new() -> Sysfs {
        Sysfs(tempfile::tempdir().unwrap())
    }

    fn root(&self) -> PathBuf {
        fs::canonicalize(self.0.path()).unwrap()
    }

    fn put(&self, folder: &str, attributes: &[(&str, &str)]) {
        let folder = self.root().join(folder);
        fs::create_dir_all(&folder).unwrap();
        for (name, value) in attributes {
            fs::create_dir_all(folder.join(name).parent().unwrap()).unwrap();
            fs::write(folder.join(name), format!("{value}\n")).unwrap();
        }
    }

    fn bus(&self, folder: &str, bus: &str) {
        symlink(format!("../../bus/{bus}"), self.root().join(folder).join("subsystem")).unwrap();
    }

    fn number(&self, class: &str, major: u32, minor: u32, folder: &str) -> u64 {
        let numbers = self.root().join("dev").join(class);
        fs::create_dir_all(&numbers).unwrap();
        symlink(self.root().join(folder), numbers.join(format!("{major}:{minor}"))).unwrap();
        rustix::fs::makedev(major, minor)
    }
}

fn nvdimm(domain: &str) -> Sysfs {
    let sysfs = Sysfs::new();
    let region = "devices/acpi/ndbus0/region3";
    sysfs.put(
        region,
        &[
            ("devtype", "nd_pmem"),
            ("persistence_domain", domain),
            ("numa_node", "1"),
            ("mapping0", "nmem0,0,268435456,0"),
            ("mapping1", "nmem1,0,268435456,1"),
        ],
    );
    sysfs.bus(region, "nd");
    sysfs.put("bus/nd/devices/nmem0", &[("nfit/dirty_shutdown", "3")]);
    sysfs.put("bus/nd/devices/nmem1", &[("nfit/dirty_shutdown", "4")]);
    sysfs
}

#[test]
fn a_partition_of_a_pmem_block_device_is_traced_to_its_region() {
    let sysfs = nvdimm("memory_controller");
    let folder = "devices/acpi/ndbus0/region3/pfn3.0/block/pmem3/pmem3p1";
    sysfs.put(folder, &[("size", "1000")]);
    sysfs.bus(folder, "block");
    let device = PmDevice::of_block(&sysfs.root(), sysfs.number("block", 259, 1, folder)).unwrap();
    assert_eq!((device.name.as_str(), device.region.as_deref()), ("pmem3p1", Some("region3")));
    assert_eq!((device.dirty_shutdowns, device.node), (Some(7), Some(Node(1))));
    // A block device's size is in sectors and does not bound the mapping of a file.
    assert_eq!(device.size, None);
    assert!(device.is_persistent());
    assert_eq!(PmDevice::flush(Some(&device)), FlushKind::detect());
    let evidence = device.evidence().join("\n");
    assert!(
        evidence.contains("region of type nd_pmem") && evidence.contains("memory_controller"),
        "{evidence}"
    );
}

#[test]
fn a_devdax_device_on_a_platform_that_saves_caches_needs_no_flush_on_x86() {
    let sysfs = nvdimm("cpu_cache");
    let folder = "devices/acpi/ndbus0/region3/dax3.0/dax3.0";
    sysfs.put(folder, &[("size", "266338304"), ("align", "2097152"), ("numa_node", "-1")]);
    sysfs.bus(folder, "dax");
    let number = sysfs.number("char", 252, 7, folder);
    let device = PmDevice::of_character(&sysfs.root(), number).unwrap();
    assert_eq!((device.size, device.align), (Some(266_338_304), 2 << 20));
    // Its own node is not told, so its region's counts.
    assert_eq!(device.node, Some(Node(1)));
    let expected = if cfg!(target_arch = "x86_64") { Some(FlushKind::None) } else { FlushKind::detect() };
    assert_eq!(PmDevice::flush(Some(&device)), expected);
}

#[test]
fn volatile_memory_behind_devdax_is_not_taken_for_persistent() {
    let sysfs = Sysfs::new();
    // A CXL memory region is called region too, but is not of the NVDIMM bus.
    let region = "devices/platform/ACPI0017/root0/decoder0/region0";
    sysfs.put(region, &[("persistence_domain", "cpu_cache"), ("devtype", "nd_pmem")]);
    sysfs.bus(region, "cxl");
    let folder = format!("{region}/dax_region0/dax0.0");
    sysfs.put(&folder, &[("size", "1073741824"), ("dax_region/align", "1073741824")]);
    sysfs.bus(&folder, "dax");
    let number = sysfs.number("char", 252, 0, &folder);
    let device = PmDevice::of_character(&sysfs.root(), number).unwrap();
    assert_eq!((device.region.clone(), device.is_persistent(), device.node), (None, false, None));
    assert_eq!(device.align, 1 << 30);
    assert_eq!(PmDevice::flush(Some(&device)), FlushKind::detect());
}

#[test]
fn other_devices_are_not_devdax() {
    let sysfs = Sysfs::new();
    sysfs.put("devices/virtual/mem/null", &[]);
    sysfs.bus("devices/virtual/mem/null", "mem");
    let number = sysfs.number("char", 1, 3, "devices/virtual/mem/null");
    assert_eq!(PmDevice::of_character(&sysfs.root(), number), None);
    assert_eq!(PmDevice::of_block(&sysfs.root(), number), None);
}
