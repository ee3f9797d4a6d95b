//! Mapping the parts of a pool: all of a new one, and those that the first part of another names.

use crate::options::Options;
use crate::types::error::Error;
use quipu_medium::{MediumError, Node, Region, Topology};
use quipu_parts::space::{MAX_EXTENTS, PartList};
use std::io::ErrorKind;
use std::path::{Path, PathBuf, absolute};

/// The region of a new pool, of one part or several. None has its name yet.
pub(super) fn create(path: &Path, options: &Options) -> Result<Region, Error> {
    let (parts, medium, durability) = (&options.parts, options.medium, options.durability);
    let count = 1 + parts.further.len();
    if parts.further.is_empty() && parts.nodes.is_empty() {
        return Ok(Region::create_unnamed(path, options.size, medium, durability)?);
    }
    if !parts.nodes.is_empty() && parts.nodes.len() != count {
        let named = parts.nodes.len();
        return Err(Error::Option(format!("{named} nodes are named for {count} parts; name one for each")));
    }
    let len = if count == 1 {
        options.size
    } else {
        options.size / count as u64 / Region::PART_UNIT * Region::PART_UNIT
    };
    if len == 0 {
        let text = format!("{} bytes are too few for {count} parts; each has at least 2 MiB", options.size);
        return Err(Error::Option(text));
    }
    let paths: Vec<&Path> = [path].into_iter().chain(parts.further.iter().map(|path| &**path)).collect();
    if count > MAX_EXTENTS {
        return Err(Error::Option(format!("{count} parts are named; a pool has at most {MAX_EXTENTS}")));
    }
    check_distinct(&paths)?;
    let mut regions = Vec::with_capacity(count);
    for (number, path) in paths.into_iter().enumerate() {
        let region = Region::create_unnamed(path, len, medium, durability);
        let region = region.map_err(|error| if number > 0 { in_the_way(error) } else { error })?;
        regions.push(match parts.nodes.get(number) {
            Some(node) => region.placed_on(*node),
            None => region,
        });
    }
    join(regions, options)
}

/// The region of an existing pool. Each of its parts is mapped by `map`.
pub(super) fn open(
    path: &Path,
    options: &Options,
    map: impl Fn(&Path) -> Result<Region, MediumError>,
) -> Result<Region, Error> {
    let first = map(path)?;
    let Some(list) = PartList::of(&first)? else {
        return match options.parts.moved.first() {
            Some((number, _)) => Err(no_part(*number, 1)),
            None => Ok(first),
        };
    };
    // Relative to the folder where the file itself is.
    let own = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (lens, mut paths) = (list.lens(), list.paths(&own));
    for (number, moved) in &options.parts.moved {
        let place = paths.get_mut(*number).filter(|_| *number > 0);
        moved.clone_into(place.ok_or_else(|| no_part(*number, lens.len()))?);
    }
    check_distinct(&paths)?;
    let mut regions = Vec::with_capacity(lens.len());
    regions.push(on(first.cut(lens[0])?, list.node(0)));
    for (number, path) in paths.iter().enumerate().skip(1) {
        let region = map(path).map_err(|error| missing(error, number, path))?;
        list.check(number, &region, path)?;
        regions.push(on(region.cut(lens[number])?, list.node(number)));
    }
    join(regions, options)
}

/// Refuses two parts on one file.
fn check_distinct(paths: &[impl AsRef<Path>]) -> Result<(), Error> {
    let places: Vec<PathBuf> =
        paths.iter().map(|path| absolute(path).unwrap_or_else(|_| path.as_ref().to_owned())).collect();
    for (number, place) in places.iter().enumerate() {
        if let Some(earlier) = places[..number].iter().position(|other| other == place) {
            let text = format!(
                "parts {earlier} and {number} are both at {}; name a place for each",
                place.display()
            );
            return Err(Error::Option(text));
        }
    }
    Ok(())
}

/// A file where a further part of a new pool is to be.
fn in_the_way(error: MediumError) -> MediumError {
    match error {
        MediumError::Exists { path } => MediumError::Part {
            path,
            reason:
                "a file is there already; choose another place, or remove what a creation has left that was \
                     not finished"
                    .to_owned(),
        },
        error => error,
    }
}

/// A region on the node that the system tells, or else the pool.
fn on(region: Region, node: Node) -> Region {
    match region.spans()[0].node {
        Some(_) => region,
        None => region.placed_on(node),
    }
}

fn join(regions: Vec<Region>, options: &Options) -> Result<Region, Error> {
    let topology = options.parts.topology.clone().map_or_else(Topology::of_machine, Ok)?;
    Ok(Region::join(regions, &topology)?)
}

fn no_part(number: usize, count: usize) -> Error {
    Error::Option(match count {
        1 => format!("a path was given for part {number}, but the pool has no other parts"),
        _ => format!("a path was given for part {number}; the parts behind the first are 1 to {}", count - 1),
    })
}

fn missing(error: MediumError, number: usize, path: &Path) -> MediumError {
    match error {
        MediumError::Io { source, .. } if source.kind() == ErrorKind::NotFound => MediumError::Part {
            path: path.to_owned(),
            reason: format!(
                "part {number} is missing there; bring it back, or name its place (--part {number}=PATH)"
            ),
        },
        error => error,
    }
}
