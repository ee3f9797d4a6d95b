//! Choices of a pool that lies on several files or devices, its parts.

use super::Options;
use quipu_medium::{Node, Topology};
use std::path::{Path, PathBuf};

/// The parts of a pool, and the nodes of the machine.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parts {
    /// Where the parts behind the first are to be, of a new pool.
    pub(crate) further: Vec<PathBuf>,
    /// The nodes of all parts, if the user names them.
    pub(crate) nodes: Vec<Node>,
    /// Where parts are now.
    pub(crate) moved: Vec<(usize, PathBuf)>,
    pub(crate) topology: Option<Topology>,
}

impl Options {
    /// Adds a part to a new pool: a file, which must not exist, or a devdax device. With several parts, the
    /// [size](Options::size) is shared equally among them, the first included, in multiples of 2 MiB. Each
    /// client then writes to the part nearest to the node on which it runs.
    ///
    /// An opening names the first part only. The pool knows where the others are: by name in the folder of
    /// the first or below it, otherwise by their full paths.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let (one, two) = (dir.path().join("one"), dir.path().join("two"));
    /// # use quipu::{Options, Store};
    /// let store = Store::create(&one, &Options::new().size(32 << 20).part(&two))?;
    /// store.client().put(b"llama", b"wool")?;
    /// store.close()?;
    /// let store = Store::open(&one, &Options::new())?;
    /// assert_eq!(store.parts().len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn part(mut self, path: impl AsRef<Path>) -> Options {
        self.parts.further.push(path.as_ref().to_owned());
        self
    }

    /// Names the present path of part `number` of an existing pool. The first is number 0, whose path is
    /// given to the opening itself.
    pub fn part_at(mut self, number: usize, path: impl AsRef<Path>) -> Options {
        self.parts.moved.push((number, path.as_ref().to_owned()));
        self
    }

    /// The nodes of all parts of a new pool, in their order. Default: the node of each device, as the system
    /// reports it; 0 for a file on a device without one.
    pub fn nodes(mut self, nodes: impl IntoIterator<Item = u16>) -> Options {
        self.parts.nodes = nodes.into_iter().map(Node).collect();
        self
    }

    /// The nodes of the machine and their distances, where a pool has several parts. Default: as the
    /// environment variable `QUIPU_TOPOLOGY` describes them, or as the system does.
    pub fn topology(mut self, topology: impl Into<Option<Topology>>) -> Options {
        self.parts.topology = topology.into();
        self
    }
}
