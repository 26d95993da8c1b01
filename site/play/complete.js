// SPDX-License-Identifier: MIT OR Apache-2.0
// Proposals while a reader types a workload file: the keys and values that the format's schema
// (docs/reference/workload.schema.json, WORKLOAD_SCHEMA) allows at the cursor.

const PROPOSALS_MAX = 60;

/** Where the cursor is: the objects around it, and the word that it is in. Null in a comment. */
function placeIn(text, at) {
  const frames = [];
  const top = () => frames[frames.length - 1];
  const ended = () => {
    if (top()) top().state = "after";
  };
  let i = 0;
  while (i < at) {
    const rest = text.slice(i, i + 2);
    if (rest === "//" || rest === "/*") {
      const end = rest === "//" ? text.indexOf("\n", i) : text.indexOf("*/", i + 2);
      if (end < 0 || end >= at) return null;
      i = rest === "//" ? end + 1 : end + 2;
      continue;
    }
    const c = text[i];
    const word = c === '"' ? stringAt(text, i) : wordAt(text, i);
    if (word) {
      // Behind its closing quote the cursor is no longer in a string.
      const isInside = c === '"' && word.closed ? at < word.end : at <= word.end;
      if (isInside) return { frames, from: i, word: text.slice(i, at), end: word.end };
      const frame = top();
      if (frame && frame.state === "key") {
        frame.key = word.text;
        frame.used.add(word.text);
        frame.state = "colon";
      } else ended();
      i = word.end;
      continue;
    }
    if (c === "{") frames.push({ state: "key", key: "", used: new Set() });
    else if (c === "[") frames.push({ state: "value", key: 0, isArray: true, used: new Set() });
    else if (c === "}" || c === "]") {
      frames.pop();
      ended();
    } else if (c === ":" && top()) top().state = "value";
    else if (c === "," && top()) top().state = top().isArray ? "value" : "key";
    i++;
  }
  return { frames, from: at, word: "", end: at };
}

/** The string that begins at a quote. A string ends at its line's end at the latest. */
function stringAt(text, start) {
  const found = /"(?:[^"\\\n]|\\.)*("?)/y;
  found.lastIndex = start;
  const [whole, close] = found.exec(text);
  const inner = whole.slice(1, close ? -1 : undefined);
  return { text: inner, end: start + whole.length, closed: close !== "" };
}

/** The word without quotes that begins here, such as a number or `true`. */
function wordAt(text, start) {
  const found = /[\w.+-]+/y;
  found.lastIndex = start;
  const match = found.exec(text);
  return match && { text: match[0], end: start + match[0].length, closed: true };
}

/** A schema and all that it refers to or is a choice of. */
function expanded(schema, seen = new Set()) {
  if (!schema || typeof schema !== "object" || seen.has(schema)) return [];
  seen.add(schema);
  const parts = [...(schema.oneOf || []), ...(schema.anyOf || []), ...(schema.allOf || [])];
  if (schema.$ref) parts.push(referred(schema.$ref));
  return [schema, ...parts.flatMap((part) => expanded(part, seen))];
}

function referred(reference) {
  const names = reference.split("/").slice(1);
  return names.reduce((found, name) => found && found[name], WORKLOAD_SCHEMA);
}

/** The schemas of a member. */
function member(schemas, key) {
  return schemas.flatMap((schema) => {
    if (schema.items && typeof key === "number") return expanded(schema.items);
    const { properties = {}, patternProperties = {}, additionalProperties: others } = schema;
    if (Object.hasOwn(properties, key)) return expanded(properties[key]);
    const fits = Object.keys(patternProperties).find((pattern) => new RegExp(pattern).test(key));
    if (fits) return expanded(patternProperties[fits]);
    return expanded(others);
  });
}

/** The first description of these schemas. */
function about(schemas) {
  const found = schemas.find(({ description }) => description);
  const usual = schemas.find((schema) => schema.default !== undefined);
  const text = found ? found.description : "";
  if (!usual || /default/i.test(text)) return text;
  return `${text} Default: ${JSON.stringify(usual.default)}.`.trim();
}

/** The keys that an object of these schemas can have, with what they mean. */
function keysOf(schemas, used) {
  const found = new Map();
  for (const { properties = {}, patternProperties = {} } of schemas) {
    for (const [key, schema] of Object.entries(properties)) {
      if (!used.has(key)) found.set(key, about(expanded(schema)));
    }
    // Events may come again, with any ending: run, run2.
    for (const [pattern, schema] of Object.entries(patternProperties)) {
      const name = /^\^([a-z_]+)/.exec(pattern);
      if (name) found.set(name[1], about(expanded(schema)));
    }
  }
  const isUseful = ([key, text]) => !key.startsWith("$") && !/without effect/.test(text);
  return [...found].filter(isUseful);
}

/** The values that these schemas name. */
function valuesOf(schemas) {
  const values = schemas.flatMap((schema) => {
    if (schema.type === "boolean") return [true, false];
    return schema.enum || (schema.const === undefined ? [] : [schema.const]);
  });
  return [...new Set(values)];
}

/**
 * What fits at the cursor: `{from, to, hint, items, word}`, where each item is `{text, insert,
 * about}` and replaces the text between `from` and `to`. `hint` is the meaning of the member at the
 * cursor, `word` what was typed of the item.
 */
function proposals(text, at) {
  const nothing = { from: at, to: at, hint: "", items: [], word: "" };
  const place = placeIn(text, at);
  if (!place || !place.frames.length) return nothing;
  const { frames, from, word } = place;
  const frame = frames[frames.length - 1];
  const outer = frames.slice(0, -1).reduce(
    (schemas, { key }) => member(schemas, key),
    expanded(WORKLOAD_SCHEMA),
  );
  const typed = word.replace(/^"/, "");
  const isString = word.startsWith('"');
  // The rest of the word is replaced, too, but not a line that follows an open quote.
  const tail = /^[\w.-]*"?/.exec(text.slice(at, place.end))[0];
  let to = at + tail.length;
  let items = [];
  if (frame.state === "key") {
    const colon = /^\s*:[ ]*/.exec(text.slice(to));
    if (colon) to += colon[0].length;
    items = keysOf(outer, frame.used).map(([key, meaning]) => ({
      text: key,
      insert: `"${key}": `,
      about: meaning,
    }));
  } else if (frame.state === "value") {
    const schemas = member(outer, frame.key);
    items = valuesOf(schemas).map((value) => ({
      text: String(value),
      insert: JSON.stringify(value),
      about: "",
    }));
    nothing.hint = about(schemas);
  }
  items = items.filter(({ text: one }) => one.toLowerCase().startsWith(typed.toLowerCase()));
  const hint = frame.state === "key" && items.length === 1 ? items[0].about : nothing.hint;
  return { from, to, hint, items: items.slice(0, PROPOSALS_MAX), word: isString ? word : typed };
}

/** The list of proposals under a text field. */
class Completion {
  constructor(field, list, hint) {
    Object.assign(this, { field, list, hint, chosen: -1, items: [] });
    field.setAttribute("aria-autocomplete", "list");
    field.setAttribute("aria-controls", list.id);
    field.addEventListener("input", () => this.offer(false));
    field.addEventListener("keydown", (event) => this.key(event));
    field.addEventListener("click", () => this.close());
    // With Tab a reader enters the list, and scrolls it.
    list.tabIndex = 0;
    list.addEventListener("keydown", (event) => this.key(event));
    for (const one of [field, list]) {
      one.addEventListener("blur", ({ relatedTarget: next }) => {
        if (next !== field && next !== list) this.close();
      });
    }
    // The field keeps the focus, and with it its cursor.
    list.addEventListener("pointerdown", (event) => event.preventDefault());
    list.addEventListener("click", ({ target }) => {
      const option = target.closest("[role=option]");
      if (option) this.accept([...list.children].indexOf(option));
    });
  }

  /** Shows what fits; without a word at the cursor only if the reader asks for it. */
  offer(isAsked) {
    const { field } = this;
    const found = proposals(field.value, field.selectionStart);
    this.hint.textContent = found.hint;
    const isWhole = found.items.length === 1 && found.items[0].text === found.word;
    if (!found.items.length || isWhole || !(isAsked || found.word)) {
      this.close();
      return;
    }
    const { from, to, items } = found;
    Object.assign(this, { from, to, items, chosen: -1 });
    const rows = found.items.map(({ text, about: meaning }, index) => {
      const row = element("li", { role: "option", id: `${this.list.id}-${index}` });
      row.setAttribute("aria-selected", "false");
      row.append(element("b", {}, text), meaning ? ` ${meaning}` : "");
      return row;
    });
    this.list.replaceChildren(...rows);
    this.list.hidden = false;
    this.list.scrollTop = 0;
  }

  close() {
    this.list.hidden = true;
    this.list.replaceChildren();
    this.items = [];
    for (const one of [this.field, this.list]) one.removeAttribute("aria-activedescendant");
  }

  key(event) {
    if (event.key === " " && event.ctrlKey) {
      event.preventDefault();
      this.offer(true);
      return;
    }
    if (this.list.hidden || event.isComposing) return;
    const moves = { ArrowDown: 1, ArrowUp: -1 };
    if (event.key in moves) this.choose(this.chosen + moves[event.key]);
    else if (event.key === "Enter" && this.chosen >= 0) this.accept(this.chosen);
    else if (event.key === "Escape") {
      this.field.focus();
      this.close();
    } else {
      if (/^(Arrow|Home|End|Page|Enter)/.test(event.key)) this.close();
      return;
    }
    event.preventDefault();
    event.stopImmediatePropagation();
  }

  choose(index) {
    const rows = [...this.list.children];
    this.chosen = (Math.max(index, -1) + rows.length) % rows.length;
    rows.forEach((row, at) => row.setAttribute("aria-selected", String(at === this.chosen)));
    rows[this.chosen].scrollIntoView({ block: "nearest" });
    for (const one of [this.field, this.list]) {
      one.setAttribute("aria-activedescendant", rows[this.chosen].id);
    }
  }

  /** Puts a proposal into the text, and shows the values that follow a key. */
  accept(index) {
    const { field, from, to } = this;
    const { insert } = this.items[index];
    field.focus();
    field.setRangeText(insert, from, to, "end");
    field.dispatchEvent(new Event("input", { bubbles: true }));
    this.close();
    if (insert.endsWith(": ")) this.offer(true);
  }
}
