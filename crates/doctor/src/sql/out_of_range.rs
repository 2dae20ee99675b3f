//! Literals out of the range of an integer column. For such a literal in a list the server reads the whole table,
//! without a note.

use crate::client::mysql::{MysqlClient, MysqlRow};
use formats::slow_log::Statement;
use formats::slow_log::tokens::{Token, TokenKind, tokens};
use ui::format::hex;

/// Sentence on an integer column that is compared with a text which is not a number in its range, where the plan reads
/// the whole table although there is an index; `None` where there is no such column.
pub(super) fn find(
    client: &MysqlClient,
    statement: &Statement,
    select: &str,
    plan: &[MysqlRow],
) -> Option<String> {
    let cell = |row: &MysqlRow, name: &str| row.get(name).filter(|text| *text != "NULL").cloned();
    let reads_all = |row: &&MysqlRow| {
        let kind = cell(row, "type");
        kind.is_some_and(|kind| kind.eq_ignore_ascii_case("all"))
            && cell(row, "key").is_none()
            && cell(row, "possible_keys").is_some()
    };
    if !plan.iter().any(|row| reads_all(&row)) {
        return None;
    }
    let compared = compared(&tokens(select)?);
    let schema = statement
        .schema
        .as_deref()
        .map_or("DATABASE()".to_owned(), quoted);
    for (column, literal) in compared {
        let query = format!(
            "SELECT table_name AS t, column_type AS full FROM information_schema.columns \
             WHERE table_schema = {schema} AND column_name = {} AND column_key <> ''",
            quoted(&column)
        );
        for row in client.rows(&query).unwrap_or_default() {
            let (table, full) = (cell(&row, "t")?, cell(&row, "full")?);
            if !fits(&literal, &full)? {
                return Some(format!(
                    "`{table}`.`{column}` of type `{full}` is compared with '{literal}', which is no number in its range"
                ));
            }
        }
    }
    None
}

fn quoted(text: &str) -> String {
    format!("CONVERT(0x{} USING utf8mb4)", hex(text.as_bytes()))
}

/// Columns with the texts that they are compared with.
fn compared(all: &[Token<'_>]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (at, token) in all.iter().enumerate() {
        if token.kind != TokenKind::Text {
            continue;
        }
        // Skip the list, the parenthesis and the operator backwards, to the name of the column.
        let before = all[..at].iter().rev().find(|token| {
            let is_between = matches!(token.text, "," | "(" | "=" | "<" | ">" | "!")
                || matches!(token.kind, TokenKind::Text | TokenKind::Number)
                || ["in", "not", "between", "and"]
                    .iter()
                    .any(|word| token.is(word));
            !is_between
        });
        let name = before.filter(|token| matches!(token.kind, TokenKind::Word | TokenKind::Name));
        found.extend(name.map(|name| (name.bare().to_owned(), token.bare().to_owned())));
    }
    found
}

/// True if a text is a number in the range of an integer type; `None` for other types.
fn fits(literal: &str, column_type: &str) -> Option<bool> {
    let full = column_type.to_lowercase();
    let name = full.split(['(', ' ']).next()?;
    let bits = match name {
        "tinyint" => 8,
        "smallint" => 16,
        "mediumint" => 24,
        "int" | "integer" => 32,
        "bigint" => 64,
        _ => return None,
    };
    let (low, high) = match full.contains("unsigned") {
        true => (0, (1_i128 << bits) - 1),
        false => (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1),
    };
    let number = literal.trim().parse::<i128>();
    Some(number.is_ok_and(|number| (low..=high).contains(&number)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_fits_a_type_or_not() {
        for (literal, kind, expected) in [
            ("5", "int(11)", Some(true)),
            ("99999999999", "int(11)", Some(false)),
            ("-1", "int unsigned", Some(false)),
            ("4294967295", "int(10) unsigned", Some(true)),
            ("abc", "bigint", Some(false)),
            ("abc", "varchar(5)", None),
        ] {
            assert_eq!(fits(literal, kind), expected, "{literal} {kind}");
        }
    }

    #[test]
    fn columns_are_found_before_their_literals() {
        let all =
            tokens("select 1 from a where n in ('5', '6') and a.m >= 'x' and 'y' = k").unwrap();
        let found = compared(&all);
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert!(
            found.contains(&pair("n", "6")) && found.contains(&pair("m", "x")),
            "{found:?}"
        );
    }
}
