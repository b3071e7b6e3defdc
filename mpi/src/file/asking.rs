//! A file as accesses of this rank by owners have it ([`nmad_file::asking`]).

use super::wire::process;
use super::{File, error_of, service};
use crate::comm::{FILES, Way, fill, lend};
use crate::error::{Class, Error, Result};
use crate::task::Ending;
use newmadeleine::{Segments, tell_user};
use nmad_file::asking::{Asking, Channel, Failed, Owners};
use nmad_file::word::Word;
use nmad_file::{Fault, Layout, Reply, Request};
use std::sync::Arc;

impl Asking for File {
    type Error = Error;
    type Ending = Ending;

    fn rank(&self) -> i32 {
        File::rank(self)
    }

    fn layout(&self) -> Arc<Layout> {
        File::layout(self)
    }

    fn word(&self) -> Option<&impl Word> {
        self.word.as_ref()
    }

    fn goes_by_owners(&self) -> bool {
        self.mode.by_owners() || self.word.as_ref().is_some_and(Word::has_owners)
    }

    fn keeps(&self) -> bool {
        self.mode.by_owners() || self.word.as_ref().is_some_and(Word::keeps)
    }

    fn owners(&self) -> &Owners {
        &self.owners
    }

    fn size(&self) -> std::result::Result<u64, Fault> {
        self.disk.size()
    }

    fn send(&self, to: i32, channel: Channel, memory: Segments) -> Result<Ending> {
        let process = process(self, to)?;
        let way: Way = match channel {
            Channel::Requests => (process, FILES, service::name(self)),
            Channel::Tag(tag) => (process, self.on.comm.context(), tag),
        };
        lend(way, memory)
    }

    fn receive(&self, from: i32, tag: u64, memory: Segments) -> Result<Ending> {
        fill((process(self, from)?, self.on.comm.context(), tag), memory)
    }

    fn serve_here(self: &Arc<File>, reply: Reply, request: Request) {
        service::serve_here(self, reply, request);
    }

    #[cold]
    fn is_gone(&self, owner: i32) {
        tell_user(format_args!(
            "nmad: file {}: rank {owner} is gone, which owned regions of the file: what was written there \
             since the last MPI_File_sync may be lost; other ranks own its regions from now on",
            self.disk.path().display()
        ));
    }

    #[cold]
    fn error(&self, why: Failed) -> Error {
        match why {
            Failed::Fault(fault) => error_of(fault),
            Failed::Message(error) => crate::comm::failed(error),
            Failed::AllGone => {
                let text = "all owners of its regions are gone: open it again with the ranks that are left";
                File::error(self, crate::health::class_of_loss(), text)
            }
            Failed::NoAnswer(owner) => {
                Class::INTERN.error(format!("rank {owner} has sent an answer that is none"))
            }
        }
    }
}
