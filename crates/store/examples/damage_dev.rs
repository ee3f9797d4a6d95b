#[path = "../../lab/src/damage/mod.rs"]
mod damage;
use quipu::Design;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let seeds: u64 = args[2].parse().unwrap();
    let first: u64 = args.get(3).map_or(0, |t| t.parse().unwrap());
    for d in Design::ALL {
        if args[1] != "all" && d.name() != args[1] {
            continue;
        }
        let begun = std::time::Instant::now();
        for g in damage::Ground::all(*d) {
            match damage::untouched(&g) {
                damage::Verdict::Harmless => {}
                v => println!("CONTROL {}: {v:?}", g.name()),
            }
        }
        let report = damage::campaign(*d, first..first + seeds);
        let show: usize = args.get(4).map_or(40, |t| t.parse().unwrap());
        let n = report.violations.len();
        let mut r = report.clone();
        r.violations.truncate(show);
        println!("{r}{} strikes, {n} violations, {:.2} s", report.strikes(), begun.elapsed().as_secs_f64());
    }
}
