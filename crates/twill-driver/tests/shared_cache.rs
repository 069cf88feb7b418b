//! Many threads search with one cache, while others throw it away: every answer is the one of a search by itself.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use twill_driver::{
    Cache, Input, Limits, LoweringParameters, Request, Session, SiblingOptions, Silent, problems, solve,
};
use twill_exact::{Budget, SearchOptions};
use twill_graph::format::ScheduleFile;

/// Threads that search.
const THREADS: usize = 32;
/// Searches of each.
const ROUNDS: usize = 3;
/// Graphs that take little time, with machines of their own.
const GRAPHS: [&str; 3] = ["toy-attention", "toy-attention-blocking", "gemm"];

/// The answer as text, without the times that it took.
fn answer(graph: &str, cache: Option<&Cache>, options: SearchOptions) -> String {
    let request = Request {
        input: Input::builtin(graph).unwrap(),
        lowering: LoweringParameters::default(),
        limits: Limits::default(),
        siblings: SiblingOptions::default(),
    };
    let one = problems(&request).unwrap().loops.remove(0);
    let mut nobody = Silent;
    let mut session = Session { cache: cache.cloned(), ..Session::new(options, &mut nobody) };
    let report = solve(graph, &one, &mut session, 0.0).unwrap();
    let mut file = ScheduleFile::new(&one.problem, &report);
    file.seconds.clear();
    file.to_json()
}

#[test]
fn threads_that_share_a_cache_agree() {
    let expected = GRAPHS.map(|graph| answer(graph, None, SearchOptions::default()));
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path());
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let clearing = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                cache.clear().unwrap();
                cache.info().unwrap();
                thread::yield_now();
            }
        });
        let searching: Vec<_> = (0..THREADS)
            .map(|number| {
                let (cache, expected) = (&cache, &expected);
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        let which = (number + round) % GRAPHS.len();
                        let found = answer(GRAPHS[which], Some(cache), SearchOptions::default());
                        assert_eq!(found, expected[which], "{}", GRAPHS[which]);
                    }
                })
            })
            .collect();
        searching.into_iter().for_each(|thread| thread.join().unwrap());
        done.store(true, Ordering::Relaxed);
        clearing.join().unwrap();
    });
    // What remains is whole: it is found, or searched anew.
    for (graph, expected) in GRAPHS.iter().zip(&expected) {
        assert_eq!(answer(graph, Some(&cache), SearchOptions::default()), *expected);
        assert_eq!(answer(graph, Some(&cache), SearchOptions::default()), *expected);
    }
    assert!(cache.info().unwrap().schedules > 0);
}

#[test]
fn an_interrupt_from_another_thread_ends_every_search() {
    let interrupt = Arc::new(AtomicBool::new(false));
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path());
    thread::scope(|scope| {
        for number in 0..THREADS {
            let (cache, interrupt) = (&cache, Arc::clone(&interrupt));
            scope.spawn(move || {
                let budget = Budget { interrupt: Some(interrupt), ..Budget::default() };
                let options = SearchOptions { budget, ..SearchOptions::default() };
                // Some end before the interrupt, and some after it: all say something.
                assert!(answer(GRAPHS[number % GRAPHS.len()], Some(cache), options).contains("\"status\""));
            });
        }
        interrupt.store(true, Ordering::Relaxed);
    });
    let kept = cache.info().unwrap().schedules;
    assert!(kept <= GRAPHS.len(), "only what is proved is kept: {kept}");
}
