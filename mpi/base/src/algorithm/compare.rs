//! Comparing what ranks say about a collective ([`super::check`]). All ranks see the same records, so all
//! come to the same verdict.

use super::check::{ANY, FIELDS, ITSELF, Kind, NULL, Operation};
use super::schedule::Seats;
use crate::error::{Class, Error, Result};

const KIND: usize = 0;
const ROOT: usize = 1;
const OPERATOR: usize = 2;
const FIRST_ARGUMENT: usize = 3;
const SENT: [usize; 2] = [6, 8];
const RECEIVED: [usize; 2] = [7, 9];
const REFUSED: usize = 10;

/// What everybody says, by seat.
struct Records<'a> {
    fields: Vec<[u64; FIELDS]>,
    seats: &'a Seats,
}

/// Whether all say the same; the first record is our own, then come those of the seats behind us.
pub(super) fn compare(records: &[u8], seats: &Seats) -> Result<()> {
    let numbers: Vec<u64> = records.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
    let mut fields = numbers.as_chunks::<FIELDS>().0.to_vec();
    fields.rotate_right(seats.me as usize);
    Records { fields, seats }.compare()
}

impl Records<'_> {
    fn compare(&self) -> Result<()> {
        self.same(self.all(KIND))?;
        if let Some((seat, _, class)) = self.all(REFUSED).next() {
            let (name, who) = (Kind::name_of(self.fields[0][KIND]), self.name(seat));
            let text = format!("{who} has refused its arguments of {name}: no rank begins it");
            return Err(Error::new(Class(class as i32), text));
        }
        match self.is_inter() {
            true => self.one_root()?,
            false => self.same(self.all(ROOT))?,
        }
        let [first, second] = [self.group(0), self.group(1)];
        let in_both = |field: usize| {
            self.same(self.told(first.clone(), field))?;
            self.same(self.told(second.clone(), field))
        };
        in_both(OPERATOR)?;
        for (sent, received) in SENT.into_iter().zip(RECEIVED) {
            let crossing = |out, into| self.told(first.clone(), out).chain(self.told(second.clone(), into));
            self.same(crossing(sent, received))?;
            self.same(crossing(received, sent))?;
        }
        match (self.operation(), self.is_inter()) {
            (Some(Operation::CommCreate), false) => self.same_in_groups(),
            // Its other arguments say how large the group is, and whether its giver is a member.
            (Some(Operation::CommCreate), true) => in_both(FIRST_ARGUMENT),
            _ => (FIRST_ARGUMENT..SENT[0]).try_for_each(in_both),
        }
    }

    fn is_inter(&self) -> bool {
        (self.seats.first as usize) < self.fields.len()
    }

    fn operation(&self) -> Option<Operation> {
        Kind::operation_of(self.fields[0][KIND])
    }

    /// The seats of a group.
    fn group(&self, which: usize) -> std::ops::Range<usize> {
        let first = self.seats.first as usize;
        if which == 0 { 0..first } else { first..self.fields.len() }
    }

    /// What some say in a field, if they say anything.
    fn told(
        &self,
        seats: std::ops::Range<usize>,
        field: usize,
    ) -> impl Iterator<Item = (usize, usize, u64)> + '_ {
        let told = seats.map(move |seat| (seat, field, self.fields[seat][field]));
        told.filter(|&(_, field, value)| value != ANY || field == ROOT)
    }

    fn all(&self, field: usize) -> impl Iterator<Item = (usize, usize, u64)> + '_ {
        self.told(0..self.fields.len(), field)
    }

    fn same(&self, mut told: impl Iterator<Item = (usize, usize, u64)>) -> Result<()> {
        let Some((seat, field, value)) = told.next() else { return Ok(()) };
        match told.find(|&(_, _, other)| other != value) {
            None => Ok(()),
            Some((other, _, differs)) => Err(self.disagree(field, (seat, value), (other, differs))),
        }
    }

    /// One rank is the root, its group knows that it is in it, and the other group names it (MPI 6.2.3).
    fn one_root(&self) -> Result<()> {
        let mut heads = self.all(ROOT).filter(|&(_, _, root)| root == ITSELF).map(|(seat, ..)| seat);
        let Some(head) = heads.next() else {
            return match self.all(ROOT).all(|(_, _, root)| root == ANY) {
                true => Ok(()),
                false => Err(Class::ROOT.error(
                    "no rank gives MPI_ROOT as root: the root itself does, the others of its group give \
                     MPI_PROC_NULL, and those of the other group the root's rank",
                )),
            };
        };
        let own = self.group(usize::from(head >= self.seats.first as usize));
        let rank = (head - own.start) as u64;
        let wrong = self
            .all(ROOT)
            .find(|&(seat, _, root)| seat != head && root != if own.contains(&seat) { NULL } else { rank });
        let Some((other, _, root)) = wrong else { return Ok(()) };
        let should = if own.contains(&other) { "MPI_PROC_NULL".into() } else { rank.to_string() };
        let (head, other) = (self.name(head), self.name(other));
        Err(Class::ROOT.error(format!(
            "{head} gives MPI_ROOT as root, {other} gives {} where it has to give {should}",
            root_name(root)
        )))
    }

    /// Groups of `MPI_Comm_create` may differ, but all members of one give it (MPI 7.4.2).
    fn same_in_groups(&self) -> Result<()> {
        let field = |seat: usize, nth: usize| self.fields[seat][FIRST_ARGUMENT + nth];
        for seat in 0..self.fields.len() {
            let (group, size) = (field(seat, 0), field(seat, 1));
            let gives = |&other: &usize| field(other, 0) == group && field(other, 2) == 1;
            let members = (0..self.fields.len()).filter(gives).count() as u64;
            if members != size {
                return Err(Class::GROUP.error(format!(
                    "{} gives a group of {size} processes, but {members} of them give the same group: all \
                     processes of a group do",
                    self.name(seat)
                )));
            }
        }
        Ok(())
    }

    /// A rank, as those of our group call it.
    fn name(&self, seat: usize) -> String {
        let (first, me) = (self.seats.first as usize, self.seats.me as usize);
        let rank = if seat < first { seat } else { seat - first };
        match (self.is_inter(), (seat < first) == (me < first)) {
            (false, _) => format!("rank {rank}"),
            (true, true) => format!("rank {rank} of this group"),
            (true, false) => format!("rank {rank} of the other group"),
        }
    }

    #[cold]
    fn disagree(&self, field: usize, (seat, value): (usize, u64), (other, differs): (usize, u64)) -> Error {
        let (one, other) = (self.name(seat), self.name(other));
        match field {
            KIND => Class::NOT_SAME.error(format!(
                "{one} is in {}, {other} in {}: all ranks of a communicator call its collectives in the same \
                 order",
                Kind::name_of(value),
                Kind::name_of(differs)
            )),
            ROOT => {
                Class::ROOT.error(format!("{one} calls it with root {value}, {other} with root {differs}"))
            }
            OPERATOR => Class::OP.error(format!("{one} and {other} call it with different operators")),
            _ if SENT[0] == field || RECEIVED[0] == field => Class::COUNT.error(format!(
                "{one} calls it with bytes of data: {value}, {other} with bytes of data: {differs}"
            )),
            _ if SENT[1] == field || RECEIVED[1] == field => Class::TYPE
                .error(format!("{one} and {other} call it with datatypes of different basic types")),
            _ => {
                let names = self.operation().map_or([""; 3], Operation::arguments);
                let name = names[field - FIRST_ARGUMENT];
                let class = if name == "group" { Class::GROUP } else { Class::ARG };
                class.error(format!("{one} and {other} call it with different {name}"))
            }
        }
    }
}

fn root_name(root: u64) -> String {
    match root {
        ITSELF => "MPI_ROOT, too,".into(),
        NULL => "MPI_PROC_NULL".into(),
        rank => rank.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::{Alike, Amount, Form, Record, Root, number};
    use super::*;

    fn record(operation: Operation, alike: Alike) -> Record {
        Record { kind: Kind { operation, form: Form::Blocking }, alike }
    }

    fn rooted(root: Root) -> Record {
        record(Operation::Bcast, Alike { root: Some(root), ..Alike::default() })
    }

    /// What all ranks find out, which is of one class; the first one's words.
    fn verdict(first: &[Record], second: &[Record]) -> Result<()> {
        let all: Vec<&Record> = first.iter().chain(second).collect();
        let found: Vec<Result<()>> = (0..all.len())
            .map(|me| {
                let behind = all.iter().cycle().skip(me).take(all.len());
                let records: Vec<u8> = behind.flat_map(|record| record.bytes()).collect();
                compare(&records, &Seats { me: me as u32, first: first.len() as u32 })
            })
            .collect();
        let class = |found: &Result<()>| found.as_ref().err().map(Error::class);
        assert!(found.iter().all(|other| class(other) == class(&found[0])), "{found:?}");
        found[0].clone()
    }

    fn refused(first: &[Record], second: &[Record], class: Class, words: &str) {
        let error = verdict(first, second).unwrap_err();
        assert_eq!(error.class(), class, "{error}");
        assert!(error.text().contains(words), "{error}");
    }

    #[test]
    fn two_groups_have_one_root() {
        let [me, null, zero, one] = [Root::Itself, Root::Null, Root::Rank(0), Root::Rank(1)].map(rooted);
        verdict(&[null, me, null], &[one, one]).unwrap();
        verdict(&[zero], &[me, null]).unwrap();
        refused(&[zero], &[zero], Class::ROOT, "no rank gives MPI_ROOT");
        refused(&[null], &[null, null], Class::ROOT, "no rank gives MPI_ROOT");
        refused(&[me, null], &[one, one], Class::ROOT, "rank 0 of the other group gives 1");
        refused(&[me, zero], &[zero, zero], Class::ROOT, "rank 1 of this group gives 0 where");
        refused(&[me, null], &[zero, me], Class::ROOT, "MPI_ROOT, too,");
    }

    #[test]
    fn what_one_group_sends_the_other_receives() {
        let [few, many] = [4, 8].map(|len| Amount { len: Some(len), signature: Some(1) });
        let other = Amount { signature: Some(2), ..few };
        let call =
            |sent, received| record(Operation::Allgather, Alike { sent, received, ..Alike::default() });
        verdict(&[call(few, many); 2], &[call(many, few)]).unwrap();
        refused(&[call(few, few)], &[call(many, few)], Class::COUNT, "bytes of data: 4, rank 0 of the other");
        refused(&[call(few, few)], &[call(few, other)], Class::TYPE, "basic types");
        let silent = record(Operation::Allgather, Alike::default());
        refused(&[call(few, few), silent], &[silent, call(few, many)], Class::COUNT, "rank 1 of the other");
    }

    #[test]
    fn operators_are_those_of_a_group() {
        let [sum, max] = [1, 2].map(|operator| {
            record(Operation::Allreduce, Alike { operator: Some(operator), ..Alike::default() })
        });
        verdict(&[sum, sum], &[max, max]).unwrap();
        refused(&[sum, sum], &[max, sum], Class::OP, "rank 0 of the other group and rank 1 of the other");
    }

    #[test]
    fn what_one_rank_refuses_none_begins() {
        let call = |refused| record(Operation::Gather, Alike { refused, ..Alike::default() });
        let (fine, wrong) = (call(None), call(Some(Class::BUFFER)));
        refused(&[fine, wrong, fine], &[], Class::BUFFER, "rank 1 has refused its arguments of MPI_Gather");
        refused(&[fine, fine], &[fine, wrong], Class::BUFFER, "rank 1 of the other group has refused");
        let other = record(Operation::Barrier, Alike::default());
        refused(&[wrong, other], &[], Class::NOT_SAME, "MPI_Barrier");
    }

    #[test]
    fn arguments_are_named() {
        let cart = |dims: &[i32], reorder: bool| {
            let arguments = [number(dims), number(&[false; 2][..]), number(reorder)];
            record(Operation::CartCreate, Alike { arguments, ..Alike::default() })
        };
        verdict(&[cart(&[1, 2], true); 3], &[]).unwrap();
        refused(&[cart(&[1, 2], true), cart(&[2, 1], true)], &[], Class::ARG, "different dims");
        refused(&[cart(&[1, 2], true), cart(&[1, 2], false)], &[], Class::ARG, "different reorder");
    }

    #[test]
    fn members_of_a_group_give_it() {
        let gives = |me: u32, group: &[u32]| {
            let is_member = u64::from(group.contains(&me));
            let arguments = [number(group), Some(group.len() as u64), Some(is_member)];
            record(Operation::CommCreate, Alike { arguments, ..Alike::default() })
        };
        // A rank outside of all groups may give any group, or none.
        verdict(&[gives(0, &[2, 0]), gives(1, &[1]), gives(2, &[2, 0]), gives(3, &[])], &[]).unwrap();
        verdict(&[gives(0, &[0]), gives(1, &[0])], &[]).unwrap();
        refused(&[gives(0, &[0]), gives(1, &[0, 1])], &[], Class::GROUP, "rank 1 gives a group of 2");
        refused(&[gives(0, &[0, 1]), gives(1, &[1, 0])], &[], Class::GROUP, "rank 0 gives a group of 2");
        // Both of one group of an intercommunicator, whether they are members or not.
        refused(&[gives(0, &[0]), gives(1, &[])], &[gives(7, &[7])], Class::GROUP, "different group");
        verdict(&[gives(0, &[0]), gives(1, &[0])], &[gives(7, &[7])]).unwrap();
    }
}
