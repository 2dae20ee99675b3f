//! Tables as CSV.

/// Text of a table in CSV.
pub(crate) struct CsvTable(String);

impl CsvTable {
    /// A table with these column titles.
    pub(crate) fn new(head: impl IntoIterator<Item = String>) -> CsvTable {
        let mut table = CsvTable(String::new());
        table.row(head);
        table
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.0.push_str(&ui::csv::line(cells.into_iter().map(cell)));
    }

    /// The table as text.
    pub(crate) fn text(self) -> String {
        self.0
    }
}

/// Text of a cell. Text that a spreadsheet would evaluate as a formula gets an apostrophe in front, since names come
/// from other systems.
fn cell(text: String) -> String {
    let is_formula =
        text.starts_with(['=', '+', '-', '@', '\t', '\r']) && text.parse::<f64>().is_err();
    match is_formula {
        true => format!("'{text}"),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_stay_cells() {
        let mut table = CsvTable::new(["a".to_owned(), "b,c".to_owned()]);
        table.row(["=cmd|x".to_owned(), "-1.5".to_owned()]);
        table.row(["say \"hi\"\n".to_owned(), String::new()]);
        assert_eq!(
            table.text(),
            "a,\"b,c\"\n'=cmd|x,-1.5\n\"say \"\"hi\"\"\n\",\n"
        );
    }
}
