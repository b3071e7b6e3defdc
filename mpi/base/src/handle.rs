//! Handles: indices into the tables of the core.
//!
//! Index 0 is the null handle, those below [`DYNAMIC`] are predefined, the others were made by the program.
//! Predefined indices are the lowest eight bits of the standard's binary interface, operators the lowest
//! five, and within their kind only: COMM_WORLD is 0x101 there and 1 here, INT is 0x209 there and 9 here.

/// Handles from here on were made by the program.
pub const DYNAMIC: u32 = 256;
/// For attribute keys, which programs get as they are: none of them is a constant of an interface.
pub const KEYVALS: u32 = 0x1000;

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// The null handle.
            pub const NULL: $name = $name(0);

            /// Whether this is the null handle.
            pub const fn is_null(self) -> bool {
                self.0 == 0
            }
        }
    )*};
}

handles! {
    /// A communicator.
    Comm;
    /// A group of processes.
    Group;
    /// A datatype.
    Type;
    /// A reduction operator.
    Op;
    /// A request.
    Request;
    /// An info object.
    Info;
    /// An error handler.
    Errhandler;
    /// A message that a matching probe has found.
    Message;
    /// A session.
    Session;
    /// A window.
    Win;
    /// A file.
    File;
    /// A key of attributes. Predefined ones are the standard's numbers without 500.
    Keyval;
}

impl Comm {
    /// All processes of the job.
    pub const WORLD: Comm = Comm(1);
    /// This process alone.
    pub const SELF: Comm = Comm(2);
}

impl Group {
    /// The group without members.
    pub const EMPTY: Group = Group(1);
}

impl Info {
    /// How this process was started.
    pub const ENV: Info = Info(1);
}

impl Errhandler {
    /// Ends the job.
    pub const FATAL: Errhandler = Errhandler(1);
    /// Ends the processes of the communicator.
    pub const ABORT: Errhandler = Errhandler(2);
    /// Answers the error to the caller.
    pub const RETURN: Errhandler = Errhandler(3);
}

impl Type {
    /// What a program passed for a datatype, and is none.
    pub const INVALID: Type = Type(u32::MAX);
    /// Bytes.
    pub const BYTE: Type = Type(0x47);
    /// `int`.
    pub const INT: Type = Type(0x09);
    /// `unsigned long long`.
    pub const UNSIGNED_LONG_LONG: Type = Type(0x0f);
    /// `double`.
    pub const DOUBLE: Type = Type(0x14);
    /// `char`.
    pub const CHAR: Type = Type(0x43);
}

impl Keyval {
    /// Highest tag.
    pub const TAG_UB: Keyval = Keyval(1);
    /// Which ranks can use files.
    pub const IO: Keyval = Keyval(2);
    /// The rank of the host.
    pub const HOST: Keyval = Keyval(3);
    /// Whether clocks are synchronous.
    pub const WTIME_IS_GLOBAL: Keyval = Keyval(4);
    /// Number of the application.
    pub const APPNUM: Keyval = Keyval(5);
    /// The highest error code in use.
    pub const LAST_USED_CODE: Keyval = Keyval(6);
    /// How many processes there can be.
    pub const UNIVERSE_SIZE: Keyval = Keyval(7);

    /// Where the memory of a window is.
    pub const WIN_BASE: Keyval = Keyval(101);
    /// The unit of its displacements.
    pub const WIN_DISP_UNIT: Keyval = Keyval(102);
    /// Its size.
    pub const WIN_SIZE: Keyval = Keyval(103);
    /// How it was made.
    pub const WIN_CREATE_FLAVOR: Keyval = Keyval(104);
    /// What loads and stores see of what others write.
    pub const WIN_MODEL: Keyval = Keyval(105);

    /// The name of a predefined one of communicators.
    pub fn name(self) -> Option<&'static str> {
        Some(match self {
            Keyval::TAG_UB => "MPI_TAG_UB",
            Keyval::IO => "MPI_IO",
            Keyval::HOST => "MPI_HOST",
            Keyval::WTIME_IS_GLOBAL => "MPI_WTIME_IS_GLOBAL",
            Keyval::APPNUM => "MPI_APPNUM",
            Keyval::LAST_USED_CODE => "MPI_LASTUSEDCODE",
            Keyval::UNIVERSE_SIZE => "MPI_UNIVERSE_SIZE",
            _ => return None,
        })
    }
}

impl Message {
    /// What a matching probe of no process answers.
    pub const NO_PROC: Message = Message(1);
}
