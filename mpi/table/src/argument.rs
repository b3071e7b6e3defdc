//! One argument of a function.

/// Where an argument goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// In (`:`).
    In,
    /// In, through a pointer that is not const (`@`).
    Lent,
    /// In, but nothing for the core (`~`).
    Unused,
    /// Out (`>`).
    Out,
    /// In and out (`<>`).
    InOut,
}

/// How long a list is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Length {
    /// As another argument says.
    Argument(String),
    /// One entry for each process that ranks of the communicator name: the remote group's, if it has one.
    Peers,
    /// One entry for each process of the local group.
    Members,
    /// As [`Length::Peers`] at the root, none elsewhere.
    Root,
    /// As [`Length::Peers`], none if the send buffer is MPI_IN_PLACE.
    Sends,
    /// One entry for each neighbour that data comes from.
    Sources,
    /// One entry for each neighbour that data goes to.
    Targets,
    /// The dimensions of the communicator's Cartesian topology.
    CartDims,
    /// The last entry of the list before.
    Last,
    /// The sum of the list `degrees`.
    Degrees,
    /// The list is not read here.
    Unread,
}

/// An argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argument {
    /// Its name in the standard.
    pub name: String,
    /// Where it goes.
    pub direction: Direction,
    /// Its kind.
    pub kind: String,
    /// For lists, how long it is.
    pub length: Option<Length>,
    /// For strings that go out, the constant that says how long it may be.
    pub room: Option<String>,
}

impl Argument {
    /// An argument that is no list.
    pub(crate) fn plain(name: &str, direction: Direction, kind: &str) -> Argument {
        Argument { name: name.into(), direction, kind: kind.into(), length: None, room: None }
    }

    /// Whether it says how long lists are.
    pub fn is_length(&self) -> bool {
        matches!(&*self.kind, "len" | "length")
    }

    pub(crate) fn parse(word: &str) -> Argument {
        let bad = || -> ! { panic!("functions.txt: cannot read the argument '{word}'") };
        let Some(at) = word.find([':', '>', '<', '@', '~']) else { bad() };
        let (name, rest) = word.split_at(at);
        if name.is_empty() {
            bad();
        }
        let (direction, rest) = match rest.strip_prefix("<>") {
            Some(rest) => (Direction::InOut, rest),
            None => (direction(&rest[..1]), &rest[1..]),
        };
        let (kind, length, room) = match rest.find(['[', '{']) {
            None => (rest, None, None),
            Some(at) => {
                let inner = &rest[at + 1..rest.len() - 1];
                match &rest[at..=at] {
                    "[" => (&rest[..at], Some(length(inner)), None),
                    _ => (&rest[..at], None, (!inner.is_empty()).then(|| inner.to_string())),
                }
            }
        };
        Argument { name: name.into(), direction, kind: kind.into(), length, room }
    }
}

fn direction(mark: &str) -> Direction {
    match mark {
        ":" => Direction::In,
        "@" => Direction::Lent,
        "~" => Direction::Unused,
        _ => Direction::Out,
    }
}

fn length(word: &str) -> Length {
    match word {
        "peers" => Length::Peers,
        "members" => Length::Members,
        "root" => Length::Root,
        "sends" => Length::Sends,
        "sources" => Length::Sources,
        "targets" => Length::Targets,
        "cartdims" => Length::CartDims,
        "last" => Length::Last,
        "degrees" => Length::Degrees,
        "*" => Length::Unread,
        name => Length::Argument(name.to_string()),
    }
}
