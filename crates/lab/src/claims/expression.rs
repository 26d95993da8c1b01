// SPDX-License-Identifier: MIT OR Apache-2.0
//! The small language in which a claim says what it compares.
//!
//! ```text
//! makespan_ns[n=2] / makespan_ns[n=1]        a measure, and which runs to use
//! turnaround_ns_mean[scheduler=rr, n=all]    `all`: the number of CPUs of the machine
//! cpu_share[task=nice0]                      a measure of one task (or more, with _min, _max ...)
//! spread(n: throughput_per_s)                over all values of n that the runs have
//! r2(n: turnaround_ns_mean)                  how well a straight line through them fits
//! abs(jain_index - 1) * 100                  + - * / abs sqrt ln min(a, b) max(a, b)
//! slice_ns_median / 4ms                         times with their units are nanoseconds
//! ```
//!
//! Text in brackets extends to the next comma: names of dimensions and their values. `evaluate`
//! defines its meaning.

use super::derived::DERIVED;
use schedlab_metrics::Unit;
use schedlab_workload::units;
use std::fmt;
use winnow::combinator::{alt, cut_err, delimited, fail, opt, preceded, separated, terminated};
use winnow::error::{ContextError, ErrMode, StrContext, StrContextValue};
use winnow::prelude::*;
use winnow::stream::AsChar;
use winnow::token::{literal, one_of, take_while};

/// Limits on the bytes and the nesting of an expression, because the parser recurses.
const BYTES_MAX: usize = 2_000;

/// An expression.
#[derive(Clone, PartialEq, Debug)]
pub enum Expr {
    /// A number.
    Number(f64),
    /// A time in nanoseconds.
    Time(f64),
    /// The current value of a series, or `all`.
    Variable(String),
    /// A measure of the runs that match the selectors.
    Measure(MeasureRef),
    /// An operation on two numbers.
    Binary(Operator, Box<Expr>, Box<Expr>),
    /// An operation on one number.
    Unary(Unary, Box<Expr>),
    /// A series over the values of a dimension.
    Series(Series, String, Box<Expr>),
}

/// A measure's name, with selectors for the runs.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct MeasureRef {
    /// Name of the measure.
    pub name: String,
    /// Dimensions and their required values.
    pub selectors: Vec<(String, String)>,
}

/// Operations on two numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operator {
    /// Sum.
    Add,
    /// Difference.
    Subtract,
    /// Product.
    Multiply,
    /// Quotient.
    Divide,
    /// The smaller.
    Min,
    /// The greater.
    Max,
}

/// Operations on one number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unary {
    /// The negative.
    Negate,
    /// Absolute value.
    Abs,
    /// Square root.
    Sqrt,
    /// Natural logarithm.
    Ln,
}

/// Functions that reduce a series to one number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Series {
    /// Least value.
    Min,
    /// Greatest value.
    Max,
    /// Mean.
    Mean,
    /// Sum.
    Sum,
    /// Greatest divided by least, minus 1: 0 if all are equal.
    Spread,
    /// Slope of the least-squares line against the dimension's values.
    Slope,
    /// Share of the variance that the least-squares line explains, 0 to 1.
    R2,
    /// Share of the steps from one value to the next that do not fall, 0 to 1.
    Rising,
}

impl Series {
    const ALL: [(&'static str, Self); 8] = [
        ("min", Self::Min),
        ("max", Self::Max),
        ("mean", Self::Mean),
        ("sum", Self::Sum),
        ("spread", Self::Spread),
        ("slope", Self::Slope),
        ("r2", Self::R2),
        ("rising", Self::Rising),
    ];
}

impl fmt::Display for MeasureRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if self.selectors.is_empty() {
            return Ok(());
        }
        let all: Vec<String> =
            self.selectors.iter().map(|(name, value)| format!("{name}={value}")).collect();
        write!(f, "[{}]", all.join(", "))
    }
}

impl Expr {
    /// Parses an expression. The error names the position where parsing failed.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > BYTES_MAX {
            return Err(format!("it has {} bytes, most are {BYTES_MAX}", text.len()));
        }
        if nesting(text) > 50 {
            return Err("it is nested more than 50 deep".into());
        }
        terminated(sum, blank).parse(text).map_err(|error| {
            let rest = text.get(error.offset()..).unwrap_or_default();
            let found = match rest.trim_start() {
                "" => "its end".to_string(),
                rest => format!("{:?}", rest.chars().take(20).collect::<String>()),
            };
            match error.inner().to_string().as_str() {
                "" => format!("cannot be read from {found} on"),
                wanted => format!("{wanted}; found {found}"),
            }
        })
    }

    /// Whether the number is a plain time in nanoseconds, not a product or quotient of units.
    pub fn is_time(&self) -> bool {
        self.power_of_time() == Some(1)
    }

    /// The exponent of time in its unit; `None` if no exponent makes sense. A plain number has
    /// exponent 0, so it can multiply anything, but adds only to unitless numbers.
    fn power_of_time(&self) -> Option<i32> {
        match self {
            Self::Number(_) | Self::Variable(_) => Some(0),
            Self::Time(_) => Some(1),
            Self::Measure(measure) => Some(match unit_of(&measure.name) {
                Unit::Ns => 1,
                Unit::PerSecond => -1,
                _ => 0,
            }),
            Self::Unary(Unary::Negate | Unary::Abs, inner) => inner.power_of_time(),
            Self::Unary(Unary::Sqrt | Unary::Ln, _) => None,
            Self::Series(series, _, inner) => match series {
                Series::Min | Series::Max | Series::Mean | Series::Sum => inner.power_of_time(),
                Series::Spread | Series::R2 | Series::Rising => Some(0),
                Series::Slope => None,
            },
            Self::Binary(operator, left, right) => {
                let (left, right) = (left.power_of_time()?, right.power_of_time()?);
                match operator {
                    Operator::Multiply => Some(left + right),
                    Operator::Divide => Some(left - right),
                    _ => (left == right).then_some(left),
                }
            }
        }
    }

    /// Every measure in the expression.
    pub fn measures(&self) -> Vec<&MeasureRef> {
        match self {
            Self::Number(_) | Self::Time(_) | Self::Variable(_) => Vec::new(),
            Self::Measure(measure) => vec![measure],
            Self::Unary(_, inner) | Self::Series(_, _, inner) => inner.measures(),
            Self::Binary(_, left, right) => [left.measures(), right.measures()].concat(),
        }
    }

    /// Variables that no enclosing series defines.
    pub fn free_variables(&self) -> Vec<&str> {
        match self {
            Self::Number(_) | Self::Time(_) | Self::Measure(_) => Vec::new(),
            Self::Variable(name) => vec![name],
            Self::Unary(_, inner) => inner.free_variables(),
            Self::Binary(_, left, right) => {
                [left.free_variables(), right.free_variables()].concat()
            }
            Self::Series(_, bound, inner) => {
                inner.free_variables().into_iter().filter(|name| name != bound).collect()
            }
        }
    }

    /// Dimensions of its series.
    pub fn series_dimensions(&self) -> Vec<&str> {
        match self {
            Self::Number(_) | Self::Time(_) | Self::Variable(_) | Self::Measure(_) => Vec::new(),
            Self::Unary(_, inner) => inner.series_dimensions(),
            Self::Binary(_, left, right) => {
                [left.series_dimensions(), right.series_dimensions()].concat()
            }
            Self::Series(_, bound, inner) => {
                [vec![bound.as_str()], inner.series_dimensions()].concat()
            }
        }
    }
}

/// The unit of a measure, as declared for claims, runs or tasks.
fn unit_of(measure: &str) -> Unit {
    let derived = DERIVED.iter().find(|known| known.name == measure);
    derived.map_or_else(|| schedlab_run::values::unit_of(measure), |known| known.unit)
}

/// Deepest nesting of brackets and signs.
fn nesting(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut deepest = 0;
    for sign in text.chars() {
        match sign {
            '(' | '-' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

type Failed = ErrMode<ContextError>;
type Read<T> = winnow::Result<T, Failed>;

fn blank(input: &mut &str) -> Read<()> {
    take_while(0.., char::is_whitespace).void().parse_next(input)
}

/// Parses a sign after optional blanks.
fn sign<'i>(text: &'static str) -> impl Parser<&'i str, (), Failed> {
    preceded(blank, literal(text))
        .void()
        .context(StrContext::Expected(StrContextValue::StringLiteral(text)))
}

/// Parses a name after optional blanks.
fn name<'i>(input: &mut &'i str) -> Read<&'i str> {
    let first = |c: char| c.is_alpha() || c == '_';
    preceded(
        blank,
        (one_of(first), take_while(0.., |c: char| c.is_alphanum() || "_.".contains(c))).take(),
    )
    .parse_next(input)
}

fn sum(input: &mut &str) -> Read<Expr> {
    let mut left = product.parse_next(input)?;
    loop {
        let operator = opt(preceded(blank, one_of(['+', '-']))).parse_next(input)?;
        let operator = match operator {
            Some('+') => Operator::Add,
            Some(_) => Operator::Subtract,
            None => return Ok(left),
        };
        let right = cut_err(product).parse_next(input)?;
        left = Expr::Binary(operator, Box::new(left), Box::new(right));
    }
}

fn product(input: &mut &str) -> Read<Expr> {
    let mut left = factor.parse_next(input)?;
    loop {
        let operator = opt(preceded(blank, one_of(['*', '/']))).parse_next(input)?;
        let operator = match operator {
            Some('*') => Operator::Multiply,
            Some(_) => Operator::Divide,
            None => return Ok(left),
        };
        let right = cut_err(factor).parse_next(input)?;
        left = Expr::Binary(operator, Box::new(left), Box::new(right));
    }
}

fn factor(input: &mut &str) -> Read<Expr> {
    let wanted = StrContext::Expected(StrContextValue::Description(
        "a number, a measure, a function or a bracket",
    ));
    alt((
        preceded(sign("-"), factor).map(|inner| Expr::Unary(Unary::Negate, Box::new(inner))),
        number,
        delimited(sign("("), sum, cut_err(sign(")"))),
        named,
    ))
    .context(wanted)
    .parse_next(input)
}

/// Parses `3`, `0.25` or `4ms`.
fn number(input: &mut &str) -> Read<Expr> {
    let digits = take_while(1.., |c: char| c.is_dec_digit() || c == '.');
    let (digits, unit): (&str, &str) =
        preceded(blank, (digits, take_while(0.., AsChar::is_alpha))).parse_next(input)?;
    let found = if unit.is_empty() {
        digits.parse().ok().filter(|value: &f64| value.is_finite()).map(Expr::Number)
    } else {
        units::parse_duration(&format!("{digits}{unit}")).ok().map(|ns| Expr::Time(ns as f64))
    };
    match found {
        Some(found) => Ok(found),
        None => fail.parse_next(input),
    }
}

/// Parses a function, a measure or a variable.
fn named(input: &mut &str) -> Read<Expr> {
    let name = name.parse_next(input)?;
    if opt(sign("(")).parse_next(input)?.is_some() {
        return cut_err(terminated(call(name), sign(")"))).parse_next(input);
    }
    if opt(sign("[")).parse_next(input)?.is_some() {
        let inside = separated(1.., selector, sign(","));
        let selectors = cut_err(terminated(inside, sign("]"))).parse_next(input)?;
        return Ok(Expr::Measure(MeasureRef { name: name.into(), selectors }));
    }
    if name.contains('_') || schedlab_run::values::measure_names().iter().any(|known| known == name)
    {
        return Ok(Expr::Measure(MeasureRef { name: name.into(), selectors: Vec::new() }));
    }
    Ok(Expr::Variable(name.into()))
}

/// Parses the arguments of a function.
fn call<'i>(function: &str) -> impl Parser<&'i str, Expr, Failed> {
    move |input: &mut &'i str| {
        let series = Series::ALL.iter().find(|(known, _)| *known == function).map(|found| found.1);
        if let Some(series) = series
            && let Some(over) = opt(terminated(name, sign(":"))).parse_next(input)?
        {
            let inner = cut_err(sum).parse_next(input)?;
            return Ok(Expr::Series(series, over.into(), Box::new(inner)));
        }
        let first = Box::new(sum.parse_next(input)?);
        let two = match function {
            "min" => Some(Operator::Min),
            "max" => Some(Operator::Max),
            _ => None,
        };
        if let Some(operator) = two {
            let second = cut_err(preceded(sign(","), sum)).parse_next(input)?;
            return Ok(Expr::Binary(operator, first, Box::new(second)));
        }
        match function {
            "abs" => Ok(Expr::Unary(Unary::Abs, first)),
            "sqrt" => Ok(Expr::Unary(Unary::Sqrt, first)),
            "ln" => Ok(Expr::Unary(Unary::Ln, first)),
            _ => fail
                .context(StrContext::Label(
                    "function: allowed are abs, sqrt, ln, min, max and, as in max(n: ...), min, \
                     max, mean, sum, spread, slope, r2, rising",
                ))
                .parse_next(input),
        }
    }
}

/// Parses `n=2`: a dimension, and text up to the next comma or bracket.
fn selector(input: &mut &str) -> Read<(String, String)> {
    let dimension = name.parse_next(input)?.to_string();
    sign("=").parse_next(input)?;
    let value = take_while(1.., |c: char| !",]".contains(c)).parse_next(input)?;
    Ok((dimension, value.trim().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measure(name: &str, selectors: &[(&str, &str)]) -> Expr {
        let selectors = selectors.iter().map(|(n, v)| ((*n).into(), (*v).into())).collect();
        Expr::Measure(MeasureRef { name: name.into(), selectors })
    }

    fn binary(operator: Operator, left: Expr, right: Expr) -> Expr {
        Expr::Binary(operator, Box::new(left), Box::new(right))
    }

    #[test]
    fn measures_carry_what_selects_their_runs() {
        let text = "makespan_ns[n=2, scheduler=linux-6.12:FIFO] / makespan_ns[n = 2*all+1]";
        let first = measure("makespan_ns", &[("n", "2"), ("scheduler", "linux-6.12:FIFO")]);
        let second = measure("makespan_ns", &[("n", "2*all+1")]);
        let found = Expr::parse(text).unwrap();
        assert_eq!(found, binary(Operator::Divide, first, second));
        assert_eq!(found.measures()[1].to_string(), "makespan_ns[n=2*all+1]");
    }

    #[test]
    fn products_bind_closer_than_sums_and_both_go_from_the_left() {
        let number = Expr::Number;
        let found = Expr::parse("8 - 2 - 3 * 2 / (1 + 1)").unwrap();
        let two = binary(Operator::Add, number(1.0), number(1.0));
        let six = binary(Operator::Multiply, number(3.0), number(2.0));
        let left = binary(Operator::Subtract, number(8.0), number(2.0));
        assert_eq!(found, binary(Operator::Subtract, left, binary(Operator::Divide, six, two)));
        assert_eq!(Expr::parse("4ms").unwrap(), Expr::Time(4e6), "in nanoseconds");
        let negative = Expr::parse("-n").unwrap();
        assert_eq!(negative, Expr::Unary(Unary::Negate, Box::new(Expr::Variable("n".into()))));
    }

    #[test]
    fn a_series_binds_its_dimension() {
        let found = Expr::parse("max(n: turnaround_ns_mean / n) + cpus").unwrap();
        assert_eq!(found.series_dimensions(), ["n"]);
        assert_eq!(found.free_variables(), ["cpus"]);
        let two = Expr::parse("max(nr_switches, 1)").unwrap();
        assert_eq!(two, binary(Operator::Max, measure("nr_switches", &[]), Expr::Number(1.0)));
        assert!(matches!(Expr::parse("r2(n: nr_switches)"), Ok(Expr::Series(Series::R2, ..))));
    }

    #[test]
    fn times_are_known_as_times() {
        let is_time = |text| Expr::parse(text).unwrap().is_time();
        assert!(is_time("max(n: wait_ns_max) - 2 * 3ms"));
        assert!(!is_time("wait_ns_max / 3ms") && !is_time("turnaround_ns_mean * nr_switches * 1s"));
        assert!(!is_time("nr_switches") && !is_time("wait_ns_max + 3"));
    }

    #[test]
    fn what_is_no_expression_is_refused_at_its_place() {
        for (text, wanted) in [
            ("", "its end"),
            ("1 +", "its end"),
            ("(1", "`)`"),
            ("makespan_ns[n=]", "\"]\""),
            ("median(1)", "spread"),
            ("4 years", "\"years\""),
            ("4parsec", "\"4parsec\""),
            ("1 2", "\"2\""),
        ] {
            let error = Expr::parse(text).unwrap_err();
            assert!(error.contains(wanted), "{text}: {error}");
        }
        assert!(Expr::parse(&"(".repeat(60)).unwrap_err().contains("nested"));
        assert!(Expr::parse(&"1+".repeat(2_000)).unwrap_err().contains("bytes"));
    }
}
