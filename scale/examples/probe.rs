use nmad_mpi::algorithm::choice::Family;
use nmad_scale::case::Case;
use nmad_scale::fabric::{FABRICS, FLAT};
use nmad_scale::packet;
use nmad_scale::stage::Stage;
use std::time::Instant;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    if args[1] == "m" {
        for f in FABRICS.iter().chain([&FLAT]) {
            let t = Instant::now();
            println!("{} {:?} {:?}", f.name, f.measured(), t.elapsed());
        }
        return;
    }
    if args[1] == "v" {
        for &family in Family::ALL {
            for ranks in [2, 5, 8] {
                for len in [8u64, 4096, 256 << 10, 4 << 20] {
                    if family == Family::Barrier && len > 8 {
                        continue;
                    }
                    let case = packet::case(family, ranks, len);
                    for (name, cost) in case.algorithms() {
                        let [theirs, ours] = packet::compared_ns(&case, name).map(|ns| ns as f64);
                        println!(
                            "{:14} {name:20} {ranks:2} {len:8} model {ours:12.0} packet {theirs:12.0} {:+.1}% cost {:+.0}%",
                            family.name(),
                            100.0 * (ours / theirs - 1.0),
                            100.0 * (cost / ours - 1.0)
                        );
                    }
                }
            }
        }
        return;
    }
    if args[1] == "b" {
        use nmad_scale::times::*;
        let path = format!("scale/golden/{}.txt", args[2]);
        let text = std::fs::read_to_string(&path).unwrap();
        let len: u64 = args[3].parse().unwrap();
        let mut rows = Vec::new();
        for line in text.lines() {
            let cells: Vec<&str> = line.split_whitespace().collect();
            let Some(&family) = Family::ALL.iter().find(|f| cells.first() == Some(&f.name())) else {
                continue;
            };
            if cells.len() != 7 {
                continue;
            }
            let case = Case { stage: Stage::block(&FABRICS[0], cells[1].parse().unwrap()), family, len };
            let chosen = family.algorithms().into_iter().find(|n| *n == cells[2]).unwrap();
            let us =
                [cells[3].parse().ok(), cells[4].parse().ok(), cells[5].parse().ok(), Some(bound_us(&case))];
            rows.push(Row { case, chosen, us });
        }
        let text = nmad_scale::times::text(&FABRICS[0], len, &rows);
        std::fs::write(format!("docs/img/{}.svg", args[2]), drawn(&text)).unwrap();
        std::fs::write(&path, text).unwrap();
        return;
    }
    if args[1] == "g" {
        nmad_scale::golden::write(nmad_scale::golden::TABLES.iter().filter(|t| t.name == args[2]));
        return;
    }
    if args[1] == "r" {
        use nmad_scale::regret::*;
        let fabric = &FABRICS[args[2].parse::<usize>().unwrap()];
        let most: usize = args[3].parse().unwrap();
        let mut cells = Vec::new();
        for &family in Family::ALL {
            for &ranks in RANKS.iter().filter(|r| **r <= most) {
                if args.len() > 4 && args[4] != family.name() {
                    continue;
                }
                for case in cases(fabric, family, ranks) {
                    let cell = Cell::of(case);
                    let row: Vec<String> = cell.row().into_iter().map(|c| c.1).collect();
                    println!("{}", row.join(" "));
                    cells.push(cell);
                }
            }
        }
        println!("{}", summary(&cells));
        return;
    }
    let ranks: usize = args[2].parse().unwrap();
    let len: u64 = args[3].parse().unwrap();
    let fabric = &FABRICS[args.get(4).map_or(0, |n| n.parse().unwrap())];
    for &family in Family::ALL {
        if args[1] != "all" && family.name() != args[1] {
            continue;
        }
        let case = Case { stage: Stage::block(fabric, ranks), family, len };
        let chosen = case.chosen();
        for (name, cost) in case.algorithms() {
            let t = Instant::now();
            let job = case.job(name, 20_000_000).unwrap();
            let built = t.elapsed();
            let Some(job) = job else {
                println!(
                    "{:14} {name:20} {ranks} {len} cost {:.1} us: too many steps ({built:?})",
                    family.name(),
                    cost / 1e3
                );
                continue;
            };
            let out = case.watched(&job, &mut ()).unwrap();
            println!(
                "{:14} {name:20} {ranks} {len} {:12.1} us, cost {:12.1} us{} steps {} messages {} far {} ({built:?}, {:?})",
                family.name(),
                out.ps as f64 / 1e6,
                cost / 1e3,
                if name == chosen { " CHOSEN" } else { "" },
                job.step_count(),
                out.messages,
                out.far_bytes,
                t.elapsed()
            );
        }
    }
}
