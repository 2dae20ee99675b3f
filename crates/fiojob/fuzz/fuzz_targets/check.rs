//! Properties of every job file, shared by the targets.

/// Reads the text, which may include itself. It is parsed or refused, and the values of parsed jobs are within their
/// limits.
pub fn check(text: &str) {
    let surroundings = fiojob::MachineFacts {
        variable: &|name| name.get(..1).map(|first| first.repeat(20)),
        include: &|_, name| match name.len() {
            0..4 => Ok(text.to_owned()),
            _ => Err("there is no such file".to_owned()),
        },
        page_size: 4096,
        memory_mb: 24_000,
        processors: 8,
    };
    match fiojob::read("job.fio", text, &surroundings) {
        Err(problems) => {
            assert!(!problems.all().is_empty());
            for error in problems.all() {
                assert!(error.place.line >= 1 && !error.to_string().is_empty());
            }
        }
        Ok(jobs) => {
            assert!(!jobs.is_empty());
            for job in jobs {
                assert!(job.numjobs >= 1 && job.iodepth >= 1 && job.nrfiles >= 1);
                for shares in [&job.sizes.read, &job.sizes.write] {
                    let percent: f64 = shares.iter().map(|share| share.percent).sum();
                    assert!((percent - 100.0).abs() < 1e-6);
                    assert!(shares.iter().all(|share| share.bytes > 0));
                }
            }
        }
    }
}
