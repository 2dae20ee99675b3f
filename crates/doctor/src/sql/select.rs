//! Conversion of a statement to a SELECT that reads the same rows: EXPLAIN of it changes nothing, and needs no write
//! privilege.

use formats::slow_log::tokens::{Token, TokenKind, tokens};

/// Functions that wait, lock or read files. Statements with them are not explained, since a server may evaluate
/// functions of constants during planning.
const REFUSED_FUNCTIONS: [&str; 9] = [
    "sleep",
    "benchmark",
    "get_lock",
    "release_lock",
    "release_all_locks",
    "load_file",
    "master_pos_wait",
    "wait_for_executed_gtid_set",
    "nextval",
];

/// The statement as a SELECT.
///
/// # Errors
/// The reason why it cannot be converted, as a clause.
pub(crate) fn as_select(statement: &str) -> Result<String, &'static str> {
    let statement = statement.trim().trim_end_matches(';').trim();
    let all = tokens(statement).ok_or("it cannot be read")?;
    if all.iter().any(|token| token.text == ";") {
        return Err("it is more than one statement");
    }
    let calls = all.iter().filter(|token| token.kind == TokenKind::Word);
    for token in calls {
        let word = token.text.to_lowercase();
        if REFUSED_FUNCTIONS.contains(&word.as_str()) {
            return Err("it calls a function that waits, locks or reads files");
        }
        if matches!(word.as_str(), "outfile" | "dumpfile") || word.starts_with("@") {
            return Err("it writes a file, or has variables");
        }
    }
    // Placeholders of a digest or a prepared statement have no type.
    if all.iter().any(|token| token.text == "?") || statement.ends_with("...") {
        return Err("its literals are left out");
    }
    let first = all.first().ok_or("it is empty")?;
    match first.text.to_lowercase().as_str() {
        "select" => Ok(statement.to_owned()),
        "delete" => of_delete(statement, &all),
        "update" => of_update(statement, &all),
        "with"
            if !all
                .iter()
                .any(|token| token.is("update") || token.is("delete")) =>
        {
            Ok(statement.to_owned())
        }
        _ => Err("it is no SELECT, UPDATE or DELETE"),
    }
}

/// Index of a keyword outside of parentheses.
fn find_outside_parentheses(all: &[Token<'_>], word: &str) -> Option<usize> {
    let mut depth = 0_i32;
    all.iter().position(|token| {
        match token.text {
            "(" => depth += 1,
            ")" => depth -= 1,
            _ => {}
        }
        depth == 0 && token.is(word)
    })
}

/// The text from the token `from` up to, but without, the token `to`; to the end without `to`.
fn text_between<'a>(
    statement: &'a str,
    all: &[Token<'_>],
    from: usize,
    to: Option<usize>,
) -> &'a str {
    let begin = all.get(from).map_or(statement.len(), |token| token.at);
    let end = match to.and_then(|to| to.checked_sub(1)) {
        Some(last) => all.get(last).map_or(statement.len(), Token::end),
        None => statement.len(),
    };
    statement.get(begin..end.max(begin)).unwrap_or_default()
}

/// The SELECT for `DELETE FROM t …`, `DELETE a FROM a JOIN b …`, `DELETE FROM a USING a JOIN b …`.
fn of_delete(statement: &str, all: &[Token<'_>]) -> Result<String, &'static str> {
    let from = find_outside_parentheses(all, "from").ok_or("it has no FROM")?;
    let tables = match find_outside_parentheses(all, "using").filter(|using| *using > from) {
        Some(using) => using + 1,
        None => from + 1,
    };
    let end = find_outside_parentheses(all, "returning");
    Ok(format!(
        "SELECT 1 FROM {}",
        text_between(statement, all, tables, end)
    ))
}

/// The SELECT for `UPDATE t SET … WHERE …`, with one table or several.
fn of_update(statement: &str, all: &[Token<'_>]) -> Result<String, &'static str> {
    let set = find_outside_parentheses(all, "set").ok_or("it has no SET")?;
    let modifiers = all.iter().skip(1);
    let modifiers = modifiers.take_while(|token| token.is("low_priority") || token.is("ignore"));
    let tables = text_between(statement, all, 1 + modifiers.count(), Some(set));
    let rest = ["where", "order", "limit"]
        .iter()
        .filter_map(|word| find_outside_parentheses(all, word))
        .filter(|at| *at > set)
        .min();
    let rest = rest.map_or("", |from| text_between(statement, all, from, None));
    Ok(format!("SELECT 1 FROM {tables} {rest}")
        .trim_end()
        .to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn changes_become_reads_of_the_same_rows() {
        for (statement, select) in [
            ("select 1", "select 1"),
            (
                "DELETE FROM t WHERE a = 1 LIMIT 5;",
                "SELECT 1 FROM t WHERE a = 1 LIMIT 5",
            ),
            (
                "delete a from a join b on a.x=b.x where b.y=1",
                "SELECT 1 FROM a join b on a.x=b.x where b.y=1",
            ),
            (
                "DELETE FROM a USING a JOIN b ON a.x=b.x",
                "SELECT 1 FROM a JOIN b ON a.x=b.x",
            ),
            (
                "DELETE FROM t WHERE a = 1 RETURNING id",
                "SELECT 1 FROM t WHERE a = 1",
            ),
            (
                "UPDATE IGNORE t SET a = (SELECT 1 FROM u WHERE 1), b='where' WHERE c = 2",
                "SELECT 1 FROM t WHERE c = 2",
            ),
            (
                "update a join b on a.x=b.x set a.y=1",
                "SELECT 1 FROM a join b on a.x=b.x",
            ),
            (
                "update t set a=1 order by b limit 2",
                "SELECT 1 FROM t order by b limit 2",
            ),
        ] {
            assert_eq!(as_select(statement).as_deref(), Ok(select), "{statement}");
        }
    }

    #[test]
    fn statements_that_do_not_read_are_refused() {
        for statement in [
            "",
            "drop table t",
            "analyze select 1",
            "select 1; drop table t",
            "select 1 into outfile '/tmp/x'",
            "select sleep(10)",
            "select @a := 1",
            "select * from t where a = ?",
            "select * from t where a = 'x...",
            "with a as (select 1) delete from t",
            "select /*! straight_join */ 1",
            "insert into t select 1",
        ] {
            assert!(as_select(statement).is_err(), "{statement}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_changed_or_refused(text: String, head in "(?i)(select|update|delete|with)?") {
            if let Ok(select) = as_select(&format!("{head} {text}")) {
                let first = select.split_whitespace().next().unwrap_or_default().to_lowercase();
                prop_assert!(first.starts_with("select") || first.starts_with("with"), "{}", select);
            }
        }
    }
}
