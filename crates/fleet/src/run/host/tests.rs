use super::*;

#[test]
fn a_host_s_own_options_stand_among_the_options() {
    let (args, own) = (
        ["zero", "--", "/dev/a"].map(str::to_owned),
        [Vec::new(), vec!["--planned".to_owned(), "{}".to_owned()]],
    );
    assert_eq!(words_of(&args, &own, 0), ["zero", "--", "/dev/a"]);
    assert_eq!(
        words_of(&args, &own, 1),
        ["zero", "--planned", "{}", "--", "/dev/a"]
    );
    assert_eq!(words_of(&args, &[], 7), ["zero", "--", "/dev/a"]);
}
