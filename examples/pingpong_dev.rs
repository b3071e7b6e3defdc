use newmadeleine::Session;
use std::time::Instant;
fn main() -> Result<(), newmadeleine::SessionError> {
    let s = Session::open()?;
    let me = s.rank();
    let other = 1 - me;
    let sizes: Vec<usize> = std::env::args().nth(1).map(|a| vec![a.parse().unwrap()]).unwrap_or(vec![8, 1024, 16384, 65536, 262144, 1 << 20, 4 << 20, 16 << 20, 64 << 20]);
    for n in sizes {
        let mut b = vec![1u8; n];
        let it = if n <= 1024 { 20000 } else { ((256usize << 20) / n).clamp(6, 4000) };
        let mut v = vec![];
        for k in 0..6 {
            let t = Instant::now();
            for _ in 0..it {
                if me == 0 { s.send(other, 1, &b)?; s.recv(other, 1, &mut b)?; } else { s.recv(other, 1, &mut b)?; s.send(other, 1, &b)?; }
            }
            if k > 0 { v.push(t.elapsed().as_secs_f64() / it as f64 / 2.0 * 1e6); }
        }
        v.sort_by(f64::total_cmp);
        if me == 0 { println!("{n:>9} half {:.3} us ({:.3}..{:.3})  {:.1} MB/s", v[2], v[0], v[4], n as f64 / v[2]); }
    }
    if me == 0 { for r in s.rails() { println!("{} {:?}", r.name, r.counters); } }
    s.close()
}
