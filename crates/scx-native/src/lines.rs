// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of places in the code of a run, for its errors.

use super::guard::Place;
use super::image::Image;
use super::program::Program;
use std::ops::Range;
use std::sync::Arc;

/// The code of a run and where its lines are. It is apart from [`super::run::Run`], so that a
/// function that works on the run can ask where it was called from.
#[derive(Debug)]
pub struct Lines {
    program: Arc<Program>,
    image: Image,
    /// Where its code and its stack are.
    pub place: Place,
}

impl Lines {
    /// The lines of `program`, loaded as `image`, which runs on `stack`.
    pub fn new(program: Arc<Program>, image: Image, stack: Range<u64>) -> Self {
        let place = Place { text: image.text.clone(), stack };
        Self { program, image, place }
    }

    /// Function, file and line of an address.
    pub fn name(&self, at: u64) -> String {
        let program = &self.program;
        let Some((object, section, offset)) = self.image.place(program, at) else {
            return "in a call of the simulator".into();
        };
        let function = program.function_at(object, section, offset).unwrap_or("?");
        match program.line_at(object, section, offset) {
            Some((file, line)) => format!("in {function} ({file}:{line})"),
            None => format!("in {function}"),
        }
    }

    /// Address of the scheduler's code that has called the simulator last.
    pub fn last_call(&self) -> u64 {
        let word = self.image.bytes(self.image.words.last_call(), 8);
        // What is kept is where the call returns to.
        u64::from_le_bytes(word.try_into().expect("eight bytes")).saturating_sub(1)
    }
}
