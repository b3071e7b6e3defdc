//! Messages in a program that runs under tokio: as futures, and by a descriptor in its loop.
#![allow(unsafe_code)]

use newmadeleine::{Armed, AsyncSession, Session, SessionError, Source};
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

/// Nothing takes longer.
const LONG: Duration = Duration::from_secs(30);
/// Messages at once.
const MANY: u64 = 200;

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime can be made")
}

/// Two ranks: everything that futures promise.
pub fn futures() {
    runtime().block_on(async {
        let session = AsyncSession::new(Session::open().expect("a job")).expect("a thread");
        timeout(LONG, large(&session)).await.expect("in time").expect("it arrives");
        timeout(LONG, many(&session)).await.expect("in time").expect("they arrive");
        timeout(LONG, dropped(&session)).await.expect("in time").expect("the rest arrives");
        let error = session.send(9, 1, vec![0u8]).await.expect_err("there is no such rank");
        assert!(matches!(error, SessionError::NoSuchRank { rank: 9, .. }), "{error}");
        session.close().expect("the launcher is there");
    });
}

/// Both directions at once, while the loop goes on.
async fn large(session: &AsyncSession) -> Result<(), SessionError> {
    let (me, other) = (session.rank(), 1 - session.rank());
    let come = session.recv(other, 1, vec![0.0f64; 500_000]);
    let sent = session.send(other, 1, vec![f64::from(me); 400_000]);
    let mut ticks = tokio::time::interval(Duration::from_millis(1));
    let both = async { tokio::try_join!(come, sent) };
    tokio::pin!(both);
    let ((message, values), data) = loop {
        tokio::select! {
            done = &mut both => break done?,
            _ = ticks.tick() => {}
        }
    };
    assert_eq!((message.from, message.count::<f64>(), values.len()), (other, 400_000, 400_000));
    assert!(values.iter().all(|&value| value == f64::from(other)) && data.len() == 400_000);
    Ok(())
}

/// Many tasks on a context of their own, in the opposite order.
async fn many(session: &AsyncSession) -> Result<(), SessionError> {
    let (session, other) = (session.channel(5)?, 1 - session.rank());
    let tasks: Vec<_> =
        (0..MANY).map(|tag| tokio::spawn(session.recv(Source::Rank(other), tag, vec![0u64; 2]))).collect();
    for tag in (0..MANY).rev() {
        session.send(other, tag, vec![tag * tag]).await?;
    }
    for (tag, task) in (0..MANY).zip(tasks) {
        let (_, values) = task.await.expect("no panic")?;
        assert_eq!(values, [tag * tag]);
    }
    Ok(())
}

/// A receive that is dropped is taken back, and its memory is nobody's.
async fn dropped(session: &AsyncSession) -> Result<(), SessionError> {
    let other = 1 - session.rank();
    let late = timeout(Duration::from_millis(20), session.recv(other, 7, vec![0u8; 64])).await;
    assert!(late.is_err(), "nobody sends with this tag yet");
    // Both have given up before either sends.
    session.send(other, 8, vec![0u8]).await?;
    session.recv(other, 8, vec![0u8]).await?;
    session.send(other, 7, b"after all".to_vec()).await?;
    let (_, text) = session.recv(other, 7, vec![0u8; 64]).await?;
    assert_eq!(text, b"after all");
    Ok(())
}

/// Two ranks: requests of a scope in a loop that sleeps on the descriptor.
pub fn descriptor() {
    let session = Session::open().expect("a job");
    let (other, mut buffer, mine) = (1 - session.rank(), vec![0u8; 300_000], vec![7u8; 300_000]);
    let done = session.scope(|scope| {
        let (come, sent) = (scope.recv(other, 1, &mut buffer)?, scope.send(other, 1, &mine)?);
        runtime().block_on(async {
            // SAFETY: the session owns the descriptor and outlives the loop's use of it.
            let watch = unsafe { AsyncFd::register(session.watch()?) }.expect("the loop takes it");
            while !scope.test_all(&[come, sent]) {
                if let Armed::Sleep(bound) = watch.get_ref().arm()? {
                    // Late or not, the next thing is to look.
                    if let Ok(ready) = timeout(bound, watch.readable()).await {
                        ready.expect("the descriptor is good").clear_ready();
                    }
                }
            }
            scope.wait_all(&[come, sent])
        })
    });
    assert_eq!(done.expect("both end")[0].len, 300_000);
    assert!(buffer.iter().all(|&byte| byte == 7));
}

/// Two ranks: values, and a buffer that comes back before its scope ends and is used again.
pub fn values() {
    let session = Session::open().expect("a job");
    let (other, mut buffer) = (1 - session.rank(), [0u32; 4]);
    let sum = session.scope(|scope| {
        let (mut sum, mut free) = (0, &mut buffer[..]);
        for round in 0..3u32 {
            let receive = scope.receive(other, 1, free)?;
            // A blocking send of another thing: the receive runs beside it.
            session.send_slice(other, 1, &[round, round + 1])?;
            let (message, values) = receive.wait()?;
            assert_eq!(message.count::<u32>(), 2);
            sum += values[..2].iter().sum::<u32>();
            free = values;
        }
        let left = scope.receive(other, 99, free)?;
        assert!(!left.is_done() && left.cancel(), "nobody sends with this tag");
        let error = left.wait().expect_err("it was taken back");
        assert!(matches!(error, SessionError::Cancelled), "{error}");
        Ok(sum)
    });
    assert_eq!(sum.expect("all arrive"), 9);
    assert_eq!(buffer[..2], [2, 3]);
}
