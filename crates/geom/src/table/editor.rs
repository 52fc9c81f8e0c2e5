//! History of a table: edits one by one, and undoing them.

use super::{Refusal, Table};

/// Table with its states before each edit.
pub struct Editor {
    table: Table,
    past: Vec<Table>,
}

impl Editor {
    /// An editor at the first state of `table`.
    pub fn new(table: Table) -> Editor {
        Editor { table, past: Vec::new() }
    }

    /// The table after all edits.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Applies one edit; a refused one leaves the table unchanged.
    pub fn edit<T>(
        &mut self,
        edit: impl FnOnce(&mut Table) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let before = self.table.clone();
        match edit(&mut self.table) {
            Ok(done) => {
                self.past.push(before);
                Ok(done)
            }
            Err(refusal) => {
                self.table = before;
                Err(refusal)
            }
        }
    }

    /// Undoes the last edit; `false` if there is none.
    pub fn undo(&mut self) -> bool {
        self.past.pop().map(|table| self.table = table).is_some()
    }
}
