//! Several tasks at once.

use std::thread::{ScopedJoinHandle, scope};

/// Runs each task, with its index, on a separate thread, and returns the results in the order of the tasks.
pub fn each_on_a_thread<T: Send, R: Send>(
    tasks: Vec<T>,
    work: impl Fn(usize, T) -> R + Sync,
) -> Vec<R> {
    scope(|scope| {
        let work = &work;
        let tasks = tasks.into_iter().enumerate();
        let threads: Vec<_> = tasks
            .map(|(number, task)| scope.spawn(move || work(number, task)))
            .collect();
        threads.into_iter().map(joined).collect()
    })
}

/// The result of a thread. Panics if the thread has panicked.
pub fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    match thread.join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_tasks() {
        let results = each_on_a_thread(vec![3_u64, 1, 2], |number, task| {
            std::thread::sleep(std::time::Duration::from_millis(10 * task));
            (number, task)
        });
        assert_eq!(results, [(0, 3), (1, 1), (2, 2)]);
    }
}
