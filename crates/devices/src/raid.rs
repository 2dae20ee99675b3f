//! Arrays of Linux software RAID, and the role of a device in them.

use linux::block::DeviceNumber;
use linux::md;
use serde::Serialize;

/// Properties of an array.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ArrayPart {
    /// Layout of the copies of RAID 10, such as `n2`; `null` at other levels.
    layout: Option<String>,
    /// Write-intent bitmap: `internal`, `external`, `lockless` or `none`; `null` at levels that can have none, and
    /// where the kernel does not report it.
    bitmap: Option<String>,
    /// Number of hot spares that wait.
    spares: usize,
}

/// Role of a device in an array.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Membership {
    /// The kernel's name of the array.
    array: String,
    /// Place in the array; `null` for a spare or a failed member.
    slot: Option<u32>,
    /// State in md's words, such as `in_sync`.
    state: Vec<String>,
    #[serde(skip)]
    is_spare: bool,
}

impl ArrayPart {
    /// Properties of the array in words.
    pub(crate) fn properties(&self) -> Vec<String> {
        let bitmap = self.bitmap.as_ref().filter(|bitmap| *bitmap != "none");
        let spares = match self.spares {
            0 => None,
            1 => Some("1 spare".to_owned()),
            count => Some(format!("{count} spares")),
        };
        let bitmap = bitmap.map(|bitmap| format!("{bitmap} bitmap"));
        [self.layout.clone(), bitmap, spares]
            .into_iter()
            .flatten()
            .collect()
    }
}

impl Membership {
    /// Role of a member that is failed or a spare; `None` for one that serves, which is the usual case.
    pub(crate) fn role(&self) -> Option<String> {
        let is = |word: &str| self.state.iter().any(|state| state == word);
        if is("faulty") {
            Some(format!("failed in {}", self.array))
        } else if self.is_spare {
            Some(format!("spare of {}", self.array))
        } else {
            None
        }
    }
}

/// Properties of the array of this number, if it is one.
pub(crate) fn array(arrays: &[md::Array], number: DeviceNumber) -> Option<ArrayPart> {
    let array = arrays.iter().find(|array| array.number == number)?;
    Some(ArrayPart {
        layout: array.layout.clone(),
        bitmap: array.bitmap.clone(),
        spares: array.spares(),
    })
}

/// Roles of a device in arrays.
pub(crate) fn memberships(arrays: &[md::Array], number: DeviceNumber) -> Vec<Membership> {
    let parts = arrays.iter().flat_map(|array| {
        let own = array.members.iter();
        let own = own.filter(move |member| member.number == Some(number));
        own.map(|member| Membership {
            array: array.name.clone(),
            slot: member.slot,
            state: member.state.clone(),
            is_spare: member.is_spare(),
        })
    });
    parts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_and_its_members_are_shown_by_what_is_not_usual() {
        let array = |bitmap: &str, spares| ArrayPart {
            layout: Some("o2".to_owned()),
            bitmap: Some(bitmap.to_owned()),
            spares,
        };
        assert_eq!(array("none", 0).properties(), ["o2"]);
        assert_eq!(
            array("internal", 2).properties(),
            ["o2", "internal bitmap", "2 spares"]
        );
        let member = |state: &str, is_spare| Membership {
            array: "md0".to_owned(),
            slot: None,
            state: vec![state.to_owned()],
            is_spare,
        };
        let role = |state, is_spare| member(state, is_spare).role().unwrap_or_default();
        assert_eq!(role("in_sync", false), "");
        assert_eq!(role("spare", true), "spare of md0");
        // One that md is rebuilding has its place already.
        assert_eq!(role("spare", false), "");
        assert_eq!(role("faulty", false), "failed in md0");
    }
}
