//! Free space as a set of aligned blocks, from which the lowest that fits is taken.
//!
//! A block that is larger than what is wanted is halved until it fits; what comes back is joined with
//! its other half for as long as that is free. So free space is always in the fewest blocks, and as long
//! as nothing is given back what was taken has no gaps. The database keeps the same set as rows and uses
//! [`rest`] to split them.

use std::collections::BTreeSet;

use crate::address::AddressBlock;

/// What is free of one root block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreeSpace {
    blocks: BTreeSet<AddressBlock>,
}

/// What stays free of a free block once a block inside of it is taken, in no order.
pub fn rest(free: AddressBlock, taken: AddressBlock) -> Vec<AddressBlock> {
    let mut left = Vec::new();
    let mut around = free;
    while around != taken && around.contains(taken) {
        let Some((lower, upper)) = around.halves() else {
            break;
        };
        if lower.contains(taken) {
            left.push(upper);
            around = lower;
        } else {
            left.push(lower);
            around = upper;
        }
    }
    left
}

impl FreeSpace {
    /// All of a block is free.
    pub fn new(root: AddressBlock) -> Self {
        Self {
            blocks: BTreeSet::from([root]),
        }
    }

    /// Takes the lowest block of this prefix.
    pub fn take(&mut self, prefix: u8) -> Option<AddressBlock> {
        let free = self.lowest(prefix)?;
        let taken = free.first(prefix)?;
        self.cut(free, taken);
        Some(taken)
    }

    fn lowest(&self, prefix: u8) -> Option<AddressBlock> {
        let mut fitting = self.blocks.iter();
        fitting
            .find(|block| block.prefix() <= prefix && prefix <= block.family().bits())
            .copied()
    }

    /// Takes this very block, if all of it is free.
    pub fn take_exactly(&mut self, wanted: AddressBlock) -> bool {
        let around = self.blocks.iter().find(|block| block.contains(wanted));
        let Some(around) = around.copied() else {
            return false;
        };
        self.cut(around, wanted);
        true
    }

    fn cut(&mut self, free: AddressBlock, taken: AddressBlock) {
        self.blocks.remove(&free);
        self.blocks.extend(rest(free, taken));
    }

    /// Takes a block back. False, and nothing changes, when part of it is free already.
    pub fn give_back(&mut self, block: AddressBlock) -> bool {
        if self.blocks.iter().any(|free| free.overlaps(block)) {
            return false;
        }
        let mut whole = block;
        while let Some((buddy, joined)) = whole.buddy().zip(whole.joined()) {
            if !self.blocks.remove(&buddy) {
                break;
            }
            whole = joined;
        }
        self.blocks.insert(whole);
        true
    }

    /// How many addresses are free.
    pub fn size(&self) -> u128 {
        let sizes = self.blocks.iter().map(|block| block.size());
        sizes.fold(0, u128::saturating_add)
    }

    /// The shortest prefix that can still be taken.
    pub fn largest(&self) -> Option<u8> {
        self.blocks.iter().map(|block| block.prefix()).min()
    }

    /// The free blocks, lowest first.
    pub fn blocks(&self) -> impl Iterator<Item = AddressBlock> + '_ {
        self.blocks.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn block(text: &str) -> AddressBlock {
        text.parse().unwrap()
    }

    #[test]
    fn blocks_are_taken_from_below_without_gaps() {
        let mut space = FreeSpace::new(block("10.0.0.0/16"));
        let taken: Vec<_> = (0..3)
            .map(|_| space.take(24).unwrap().to_string())
            .collect();
        assert_eq!(taken, ["10.0.0.0/24", "10.0.1.0/24", "10.0.2.0/24"]);
        assert_eq!(space.take(17).unwrap().to_string(), "10.0.128.0/17");
        assert_eq!(space.take(17), None, "only smaller ones are left");
        assert_eq!(space.take(24).unwrap().to_string(), "10.0.3.0/24");
        assert_eq!(space.take(33), None);
        assert!(space.give_back(block("10.0.1.0/24")));
        assert!(!space.give_back(block("10.0.1.0/24")), "twice");
        assert_eq!(space.take(24).unwrap().to_string(), "10.0.1.0/24");
    }

    #[test]
    fn a_chosen_block_is_taken_if_all_of_it_is_free() {
        let mut space = FreeSpace::new(block("fd00::/48"));
        assert!(space.take_exactly(block("fd00:0:0:1::/64")));
        assert!(!space.take_exactly(block("fd00:0:0:1::/64")));
        assert!(
            !space.take_exactly(block("fd00::/63")),
            "half of it is taken"
        );
        assert!(!space.take_exactly(block("fd01::/64")));
        assert_eq!(space.take(64).unwrap().to_string(), "fd00::/64");
        assert_eq!(space.take(64).unwrap().to_string(), "fd00:0:0:2::/64");
    }

    /// What a series of takes and returns leaves, with everything that must always hold.
    fn play(root: AddressBlock, moves: &[(u8, bool)]) -> (FreeSpace, Vec<AddressBlock>) {
        let mut space = FreeSpace::new(root);
        let mut held: Vec<AddressBlock> = Vec::new();
        for (number, take) in moves {
            if *take || held.is_empty() {
                let bits = root.family().bits() - root.prefix();
                let prefix = root.prefix() + number % (bits + 1);
                if let Some(taken) = space.take(prefix) {
                    assert!(root.contains(taken), "{taken} is outside of {root}");
                    let clash = held.iter().find(|one| one.overlaps(taken));
                    assert_eq!(clash, None, "{taken} was given twice");
                    held.push(taken);
                } else {
                    let room = space.largest().is_some_and(|largest| largest <= prefix);
                    assert!(!room, "/{prefix} was refused with room for it");
                }
            } else {
                let back = held.remove(usize::from(*number) % held.len());
                assert!(space.give_back(back));
            }
        }
        (space, held)
    }

    proptest! {
        #[test]
        fn nothing_overlaps_and_what_comes_back_is_whole_again(
            root in prop_oneof![Just("10.0.0.0/20"), Just("fd00::/110")],
            moves in prop::collection::vec((any::<u8>(), any::<bool>()), 0..200),
        ) {
            let root = block(root);
            let (mut space, held) = play(root, &moves);
            let sizes = held.iter().map(|one| one.size()).sum::<u128>();
            prop_assert_eq!(space.size() + sizes, root.size());
            for one in held {
                prop_assert!(space.give_back(one));
            }
            prop_assert_eq!(space, FreeSpace::new(root));
        }

        #[test]
        fn a_split_loses_nothing(at in 0_u32..65536, prefix in 16_u8..=32) {
            let free = block("10.0.0.0/16");
            let family = free.family();
            let base = free.base() + u128::from(at);
            let width = 1_u128 << (32 - prefix);
            let taken = AddressBlock::new(family, base / width * width, prefix).unwrap();
            let left = rest(free, taken);
            let sum: u128 = left.iter().map(|one| one.size()).sum();
            prop_assert_eq!(sum + taken.size(), free.size());
            prop_assert!(left.iter().all(|one| !one.overlaps(taken) && free.contains(*one)));
        }
    }
}
