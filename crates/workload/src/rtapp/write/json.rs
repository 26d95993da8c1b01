// SPDX-License-Identifier: MIT OR Apache-2.0
//! JSON values and their printed form.

use std::fmt::Write;

/// A JSON value to print. Numbers and booleans are `Plain`.
pub(super) enum Json {
    Plain(String),
    Text(String),
    List(Vec<String>),
    /// Printed with one value per line.
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
    /// Printed on one line.
    Short(Vec<(String, Json)>),
}

/// A member of an object.
pub(super) type Member = (String, Json);

pub(super) fn member(key: &str, value: Json) -> Member {
    (key.into(), value)
}

pub(super) fn plain(value: impl ToString) -> Json {
    Json::Plain(value.to_string())
}

pub(super) fn text(value: impl Into<String>) -> Json {
    Json::Text(value.into())
}

/// A list of strings on one line.
pub(super) fn names<'n>(names: impl Iterator<Item = &'n str>) -> Json {
    let quoted = names.map(|name| {
        let mut text = String::new();
        quote(&mut text, name);
        text
    });
    Json::List(quoted.collect())
}

pub(super) fn print(text: &mut String, value: &Json, indent: usize) {
    match value {
        Json::Plain(plain) => text.push_str(plain),
        Json::Text(string) => quote(text, string),
        Json::List(items) => {
            let _ = write!(text, "[{}]", items.join(", "));
        }
        Json::Array(values) => {
            for (index, value) in values.iter().enumerate() {
                text.push_str(if index == 0 { "[\n" } else { ",\n" });
                text.push_str(&"  ".repeat(indent + 1));
                print(text, value, indent + 1);
            }
            text.push('\n');
            text.push_str(&"  ".repeat(indent));
            text.push(']');
        }
        Json::Object(members) => print_object(text, members, indent),
        Json::Short(members) => {
            text.push_str("{ ");
            for (index, (key, value)) in members.iter().enumerate() {
                text.push_str(if index == 0 { "" } else { ", " });
                quote(text, key);
                text.push_str(": ");
                print(text, value, indent);
            }
            text.push_str(" }");
        }
    }
}

/// Prints members on one line, without braces around them.
pub(super) fn print_line(text: &mut String, members: &[(&String, &Json)]) {
    for (index, (key, value)) in members.iter().enumerate() {
        text.push_str(if index == 0 { "" } else { ", " });
        quote(text, key);
        text.push_str(": ");
        match value {
            Json::Object(inner) | Json::Short(inner) if inner.is_empty() => text.push_str("{}"),
            Json::Object(inner) | Json::Short(inner) => {
                let inner: Vec<_> = inner.iter().map(|(key, value)| (key, value)).collect();
                text.push_str("{ ");
                print_line(text, &inner);
                text.push_str(" }");
            }
            value => print(text, value, 1),
        }
    }
}

fn print_object(text: &mut String, members: &[(String, Json)], indent: usize) {
    if members.is_empty() {
        text.push_str("{}");
        return;
    }
    text.push('{');
    for (index, (key, value)) in members.iter().enumerate() {
        text.push_str(if index == 0 { "\n" } else { ",\n" });
        text.push_str(&"  ".repeat(indent + 1));
        quote(text, key);
        text.push_str(": ");
        print(text, value, indent + 1);
    }
    text.push('\n');
    text.push_str(&"  ".repeat(indent));
    text.push('}');
}

fn quote(text: &mut String, string: &str) {
    text.push('"');
    for c in string.chars() {
        match c {
            '"' | '\\' => {
                text.push('\\');
                text.push(c);
            }
            c if c.is_control() => {
                let _ = write!(text, "\\u{:04x}", c as u32);
            }
            c => text.push(c),
        }
    }
    text.push('"');
}
