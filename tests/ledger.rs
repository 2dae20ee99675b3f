//! The verbs that look into the ledger (`runs`, `show`, `compare`, `report`), through the real
//! program.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

#[path = "ledger/files.rs"]
mod files;

use support::{Place, SHORT};

/// A place whose ledger holds two runs, the first of the phase `seek`, and their ids, newest first.
fn place_with_two_runs() -> (Place, [String; 2]) {
    let place = Place::new();
    let options = "--size 4M --seconds 100ms --phase seek";
    place.bench(options).ends_with(0);
    // An id begins with the second in which its run began.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    place.bench(&SHORT).ends_with(0);
    let ids = place.runs().try_into().unwrap();
    (place, ids)
}

#[test]
fn the_list_shows_the_newest_first_and_fits_100_columns() {
    let (place, [newer, older]) = place_with_two_runs();
    let listed = place.run("runs").ends_with(0);
    listed.fits(100);
    let at = |id: &str| listed.out.find(id).unwrap();
    assert!(at(&newer) < at(&older), "{listed:#?}");
    for word in ["/data ", " database ", " doubtful\n"] {
        assert_eq!(listed.out.matches(word).count(), 2, "{listed:#?}");
    }

    let document = place.run("runs --json").ends_with(0).json();
    assert_eq!(document["schema"], 1);
    assert_eq!(document["command"], "runs");
    let run = &document["runs"][0];
    assert_eq!(run["run"], newer);
    assert_eq!(run["suite"], "database");
    assert_eq!(run["origin"], "measured");
    assert_eq!(run["interrupted"], false);
    assert_eq!(run["verdict"], "doubtful");
    assert_eq!(run["phases"].as_array().unwrap().len(), 1);
    assert!(run["started"].is_string() && run["hostname"].is_string());
}

#[test]
fn the_list_can_be_narrowed_down() {
    let (place, [newer, older]) = place_with_two_runs();
    let run = place.run("show last --json").ends_with(0).json();
    let host = run["machine"]["hostname"].as_str().unwrap();
    let target = run["target"]["path"].as_str().unwrap();
    for (words, found) in [
        (vec!["--limit", "1"], vec![&newer]),
        (vec!["--host", host], vec![&newer, &older]),
        (vec!["--target", target], vec![&newer, &older]),
        (vec!["--suite", "database"], vec![&newer, &older]),
        (vec!["--host", "elsewhere"], vec![]),
        (vec!["--target", "/elsewhere"], vec![]),
        (vec!["--suite", "workload"], vec![]),
    ] {
        let listed = place.run(&[&["runs", "--json"], &words[..]].concat());
        let listed = listed.ends_with(0).json();
        let runs = listed["runs"].as_array().unwrap().iter();
        let ids: Vec<&str> = runs.map(|run| run["run"].as_str().unwrap()).collect();
        assert_eq!(ids, found, "{words:?}");
    }
    // That there are none of that kind must not read as if there were none at all.
    let listed = place.run("runs --host elsewhere").ends_with(0);
    assert!(!listed.out.contains("No runs are kept"), "{listed:#?}");
}

#[test]
fn a_verb_that_only_reads_a_ledger_makes_none() {
    let place = Place::new();
    let page = place.path("page.html");
    let (ledger, page) = (place.path("none/ledger.db"), page.to_str().unwrap());
    let words = ["--ledger", ledger.to_str().unwrap()];
    for (command, status, answer) in [
        (&["runs"][..], 0, "No runs are kept"),
        (&["runs", "recordings"], 0, "Nothing is recorded"),
        (&["mark", "--list"], 0, "No marks are set"),
        (&["show", "last"], 2, "no run in the ledger"),
        (&["compare", "last", "last~1"], 2, "no run in the ledger"),
        (&["report", "last", "-o", page], 2, "no run in the ledger"),
        (&["runs", "remove", "last"], 2, "no run in the ledger"),
        (
            &["runs", "recordings", "--remove", "1"],
            2,
            "no recording 1",
        ),
        (&["mark", "--remove", "1"], 2, "no mark 1"),
        (&["sweep", "--show", "last"], 2, "sweep"),
    ] {
        let said = place.run(&[command, &words[..]].concat()).ends_with(status);
        let text = said.out.clone() + &said.err;
        assert!(text.contains(answer), "{command:?}: {said:#?}");
        assert!(
            !ledger.exists() && !ledger.parent().unwrap().exists(),
            "{command:?}"
        );
    }
}

#[test]
fn an_empty_ledger_says_how_to_fill_it() {
    let listed = Place::new().run("runs").ends_with(0);
    listed.prints(&["disksmith bench"]);
}

#[test]
fn a_run_is_shown_again_as_it_was_printed() {
    let place = Place::new();
    let printed = place.bench(&SHORT).ends_with(0);
    let shown = place.run("show last").ends_with(0);
    assert_eq!(shown.out, printed.out);

    let arguments = [&SHORT[..], &["--json"]].concat();
    let printed = place.bench(&arguments).ends_with(0);
    let shown = place.run("show last --json").ends_with(0);
    assert_eq!(shown.out, printed.out);
}

#[test]
fn a_run_is_named_by_its_id_a_part_of_it_or_its_place_in_the_list() {
    let (place, [newer, older]) = place_with_two_runs();
    let shown = |word: &str| {
        let run = place.run(&["show", word, "--json"]).ends_with(0).json();
        run["run"].as_str().unwrap().to_owned()
    };
    assert_eq!(shown("last"), newer);
    assert_eq!(shown("last~0"), newer);
    assert_eq!(shown("last~1"), older);
    for id in [&newer, &older] {
        assert_eq!(shown(id), *id);
        // All but the last four letters say when it began, to the second.
        assert_eq!(shown(&id[..id.len() - 4]), *id);
        assert_eq!(shown(&id[id.len() - 4..]), *id);
    }
}

#[test]
fn a_word_that_names_no_run_or_several_is_refused_by_every_verb() {
    let (place, [newer, older]) = place_with_two_runs();
    let all = [
        "show _",
        "compare last _",
        "compare _ last",
        "report _ -o page.html",
    ];
    for verb in all.into_iter().chain(["runs remove _"]) {
        let run = |word: &str| {
            let words: Vec<&str> = verb.split(' ').collect();
            let words = words.into_iter().map(|w| if w == "_" { word } else { w });
            place.run(&words.collect::<Vec<_>>())
        };
        run("nosuch").refuses(&["'nosuch'", "listed by: disksmith runs"]);
        run("last~2").refuses(&["'last~2'"]);
        run("20").refuses(&["'20' may be any of 2 runs", &newer, &older]);
    }
    assert_eq!(place.runs().len(), 2);
    assert!(!place.path("page.html").exists());
}

#[test]
fn a_run_is_removed_by_name_and_all_that_are_named_or_none() {
    let (place, [newer, older]) = place_with_two_runs();
    place.run("runs remove last nosuch").refuses(&["'nosuch'"]);
    assert_eq!(place.runs().len(), 2);
    let removed = place.run("runs remove last~1").ends_with(0);
    removed.prints(&[&older]);
    assert_eq!(place.runs(), [newer.as_str()]);
    place.run(&["show", &older]).refuses(&[&older]);
    place.run(&["runs", "remove", &newer]).ends_with(0);
    assert_eq!(place.runs(), [""; 0]);
    place.run("runs remove").refuses(&["Usage"]);
}

#[test]
fn a_slower_run_fails_the_bar_and_a_faster_one_does_not() {
    let place = Place::new();
    // An open loop does what it is told, so the two differ by far more than chance.
    for rate in ["600", "200"] {
        let options = "--size 4M --phase page-read --seconds 4 --precision 0 --rate";
        let options: Vec<&str> = options.split(' ').chain([rate]).collect();
        place.bench(&options).ends_with(0);
    }
    let [slow, fast] = place.runs().try_into().unwrap();

    let plain = place.run(&["compare", &fast, &slow]).ends_with(0);
    plain.fits(100);
    let prose = plain.prose();
    for words in [fast.as_str(), &slow] {
        assert!(prose.contains(words), "no {words} in {plain:#?}");
    }
    let (_, rest) = prose
        .split_once("page-read read: B is slower by ")
        .unwrap_or_else(|| panic!("not slower: {plain:#?}"));
    let by: f64 = rest.split(' ').next().unwrap().parse().unwrap();
    // 66.7 %, where the disk stalls in neither.
    assert!((50.0..80.0).contains(&by), "{plain:#?}");
    assert!(prose.contains("did not do the same work"), "{prose}");

    let bar = ["--fail-if-slower", "5%"];
    let failed = place.run(&[&["compare", &fast, &slow], &bar[..]].concat());
    let failed = failed.ends_with(1);
    let prose = failed.prose();
    assert!(
        prose.contains("Slower by more than 5 %: page-read read."),
        "{prose}"
    );
    assert_eq!(failed.err, "");

    // Another rate is other work, by which nothing passes.
    let unclear = format!("compare {slow} {fast} --fail-if-slower 5%");
    let prose = place.run(&unclear).ends_with(1).prose();
    assert!(prose.contains("B is faster by"), "{prose}");
    assert!(prose.contains("Inconclusive: page-read read: the two runs did not do the same work."));
    place
        .run(&format!("{unclear} --allow-inconclusive"))
        .ends_with(0);

    // A bar as wide as 800 requests at random times allow.
    let same = ["compare", "last", "last", "--fail-if-slower", "50%"];
    let same = place.run(&same);
    let prose = same.ends_with(0).prose();
    assert!(
        prose.contains("page-read read: no difference shown."),
        "{prose}"
    );

    let json = format!("compare {fast} {slow} --fail-if-slower 5% --json");
    let document = place.run(&json).ends_with(1).json();
    assert_eq!(document["command"], "compare");
    assert_eq!(document["a"], fast);
    assert_eq!(document["b"], slow);
    assert_eq!(document["slower"], true);
    let phase = &document["phases"][0];
    assert_eq!(phase["difference_shown"], true);
    let bound = |key: &str| phase["ratio"][key].as_f64().unwrap();
    // A third. Of intervals of 95 %, one in twenty does not hold it; six deviations of 800 and 2,400 requests at random
    // times are a quarter of it.
    let third = 1.0 / 3.0;
    assert!(
        bound("low") < 1.25 * third && 0.75 * third < bound("high"),
        "{phase}"
    );
}

#[test]
fn runs_that_have_no_phase_in_common_are_not_compared() {
    let (place, _) = place_with_two_runs();
    let gate = "compare last~1 last --fail-if-slower 5%";
    let prose = place.run(gate).ends_with(1).prose();
    assert!(prose.contains("no phase in common"), "{prose}");
    assert!(prose.contains("B has no such phase"), "{prose}");
    let document = place.run(&format!("{gate} --json")).ends_with(1);
    assert_eq!(document.json()["inconclusive"], true);
    place
        .run(&format!("{gate} --allow-inconclusive"))
        .ends_with(0);
    place
        .run("compare last~1 last --fail-if-slower 0.5")
        .refuses(&["write 0.5%, or 50% for that share"]);
    place
        .run("compare last~1 last --allow-inconclusive")
        .refuses(&["--fail-if-slower"]);
    assert!(prose.contains("has no phase seek."), "{prose}");
}

#[test]
fn a_report_lays_the_runs_over_each_other_in_one_page() {
    let (place, ids) = place_with_two_runs();
    let said = place.run("report last~1 last -o page.html");
    let said = said.ends_with(0);
    assert_eq!((said.out.as_str(), said.err.as_str()), ("", ""));
    let page = std::fs::read_to_string(place.path("page.html")).unwrap();
    for id in ids {
        assert!(page.contains(&id), "no {id}");
    }
    place
        .run("report last -o missing/page.html")
        .refuses(&["missing/page.html"]);
    place.run("report -o page.html").refuses(&["Usage"]);
}
