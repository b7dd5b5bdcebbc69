// A table of runs: boxes choose them, names lead to their page, heads sort. Built from text nodes only, so that no name is ever read as HTML.

const PATIENCE_MS = 5000
const HOVER_MS = 400
const collator = new Intl.Collator(undefined, { numeric: true })

// By a table's name on the page, to outlive a table drawn anew: what sorts it, and the ticks that the server has not yet
// confirmed. Until then it may still send what it knew before.
const sorts = new Map()
const unconfirmed = new Map()
const drawn = new WeakMap() // root → what it shows

// What a line has in a column: its text or words, and how much of it is done.
function content(column, place) {
  const [text, share] = [column.texts[place], column.shares[place] ?? null]
  const bar = { className: "track", role: "img", ariaLabel: `${Math.round(share)}% done` }
  const bars = share === null ? [] : [element("span", bar, element("i", { style: { width: `${share}%` } }))]
  const words = typeof text === "string" ? [element("span", "", text)] : text.map(([colour, word]) => element("span", { className: "word", style: { "--ink": `var(--st-${colour}-text-color)` } }, word))
  return [...words, ...bars]
}

// The cell of a line in a column. Notes are as wide as the longest, so that what stands before them is aligned.
function cell(column, place) {
  const letters = Math.max(0, ...column.notes.map((note) => note.length))
  const note = letters ? [" ", element("span", { className: "note", style: { "--letters": letters } }, column.notes[place])] : []
  return element("td", column.bold.includes(place) ? `${column.kind} best` : column.kind, ...content(column, place), ...note)
}

// The places of the lines as the reader sorted them; those without a value are last.
function order(values, sign) {
  const compare = (a, b) => (typeof values[a] === "number" ? values[a] - values[b] : collator.compare(values[a], values[b]))
  const places = [...values.keys()]
  const known = places.filter((place) => values[place] !== null).sort((a, b) => sign * compare(a, b))
  return [...known, ...places.filter((place) => values[place] === null)]
}

// Says above a head what it means, while it is pointed at or reached by a key.
function explain(button, help, tip) {
  const show = () => {
    tip.textContent = help
    tip.showPopover()
    const place = button.getBoundingClientRect()
    tip.style.top = `${Math.max(8, place.top - tip.offsetHeight - 6)}px`
    tip.style.left = `${Math.max(8, Math.min(place.left, innerWidth - tip.offsetWidth - 8))}px`
  }
  const hide = () => {
    clearTimeout(tip.timer)
    tip.hidePopover()
  }
  const onpointerenter = () => (tip.timer = setTimeout(show, HOVER_MS))
  const onfocus = () => button.matches(":focus-visible") && show()
  const onkeydown = ({ key }) => void (key === "Escape" && hide())
  Object.assign(button, { onpointerenter, onfocus, onpointerleave: hide, onpointerdown: hide, onblur: hide, onkeydown })
  button.setAttribute("aria-description", help)
}

export default function ({ data, key: name, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector("#root")
  const shown = drawn.get(root) ?? {}
  const text = JSON.stringify(data)
  shown.tell = setTriggerValue
  if (shown.text === text) return
  shown.text = text
  drawn.set(root, shown)

  const { lines } = data
  const columns = [{ name: "Name", head: "Name", kind: "name", values: lines.map((line) => line.name), notes: [] }, ...data.columns]
  // The columns of scores are first; behind them is the room that other tables of the page need for theirs.
  const scores = data.columns.filter((column) => column.is_score).length
  const withBlank = (parts) => parts.toSpliced(scores, 0, ...(data.blanks ? [element("td", "blank")] : []))
  const state = data.columns.find((column) => column.kind === "words")
  root.style.setProperty("--widest", data.widest)
  root.style.setProperty("--blanks", data.blanks)
  const held = root.getRootNode().activeElement?.dataset?.at
  const scrolled = root.querySelector(".scroll")?.scrollLeft ?? 0
  const tip = element("div", { className: "tip", popover: "manual" })
  const body = element("tbody")
  const reached = (at, node) => {
    node.dataset.at = at
    return node
  }

  // The share of a line's runs that is chosen.
  const share = (line) => {
    const asked = unconfirmed.get(name)?.asked
    return asked?.on.includes(line.runs[0]) ? 1 : asked?.off.includes(line.runs[0]) ? 0 : line.chosen / line.runs.length
  }
  const confirm = () => {
    clearTimeout(unconfirmed.get(name)?.timer)
    unconfirmed.delete(name)
  }
  const ticked = () => {
    const runs = (isWanted) => lines.filter((_, place) => isWanted(boxes[place])).flatMap((line) => line.runs)
    const asked = { on: runs((box) => box.checked), off: runs((box) => !box.checked && !box.indeterminate) }
    confirm()
    unconfirmed.set(name, { asked, timer: setTimeout(() => (confirm(), shown.paint()), PATIENCE_MS) })
    shown.paint()
    shown.tell("ticked", asked)
  }
  const box = (at, ariaLabel, onchange) => reached(at, element("input", { type: "checkbox", ariaLabel, onchange }))
  const boxes = lines.map((line) => box(`box ${line.runs}`, `Select ${line.name}`, ticked))
  const every = box("every", "Select all of this table", () => {
    for (const one of boxes) Object.assign(one, { checked: every.checked, indeterminate: false })
    ticked()
  })
  shown.paint = () => {
    const shares = lines.map(share)
    shares.forEach((part, place) => {
      Object.assign(boxes[place], { checked: part === 1, indeterminate: part > 0 && part < 1 })
      rows[place].classList.toggle("chosen", part > 0)
    })
    every.checked = shares.every((part) => part === 1)
    every.indeterminate = !every.checked && shares.some((part) => part > 0)
  }

  const open = (line) => (event) => {
    if (opensApart(event)) return
    event.preventDefault()
    shown.tell("opened", line.runs)
  }
  const rows = lines.map((line, place) => {
    const link = reached(`link ${line.runs}`, element("a", { href: `run?id=${line.runs}`, onclick: open(line) }, line.name))
    return element("tr", "", element("td", "box", element("label", "", boxes[place])), element("th", { className: "name", scope: "row" }, link, ...(state ? [element("div", "under", ...content(state, place))] : [])),
      ...withBlank(data.columns.map((column) => cell(column, place))), element("td", "rest"))
  })

  const sortBy = ({ name: column, values }) => {
    const first = typeof values.find((value) => value !== null) === "number" ? -1 : 1
    const now = sorts.get(name)
    if (now?.column !== column) sorts.set(name, { column, sign: first })
    else if (now.sign === first) sorts.set(name, { column, sign: -first })
    else sorts.delete(name)
    arrange()
  }
  const heads = columns.map((column) => {
    const button = reached(`head ${column.name}`, element("button", { type: "button", onclick: () => sortBy(column) }, element("span", "", column.head)))
    if (column.help) explain(button, column.help, tip)
    return element("th", { className: column.kind, scope: "col" }, button)
  })
  const arrange = () => {
    const sort = sorts.get(name)
    const column = columns.findIndex((one) => one.name === sort?.column)
    heads.forEach((head, at) => (head.ariaSort = at !== column ? null : sort.sign < 0 ? "descending" : "ascending"))
    body.replaceChildren(...(column < 0 ? rows : order(columns[column].values, sort.sign).map((place) => rows[place])))
  }

  if (lines.every((line) => share(line) === line.chosen / line.runs.length)) confirm()
  shown.paint()
  arrange()
  const head = element("tr", "", element("td", "box", element("label", "", every)), heads[0], ...withBlank(heads.slice(1)), element("td", "rest"))
  const table = element("table", { ariaLabel: data.alt }, element("thead", "", head), body)
  const scroll = element("div", "scroll", table)
  scroll.onscroll = () => scroll.classList.toggle("moved", scroll.scrollLeft > 0)
  const about = data.about.flatMap(([words, isApart], at) => [at ? " · " : "", isApart ? element("b", "", words) : words])
  root.replaceChildren(element("div", "head", element("h3", "", data.title), element("span", "", ...about), element("span", "when", data.when)), scroll, tip)
  scroll.scrollLeft = scrolled
  if (held) [...root.querySelectorAll("[data-at]")].find((node) => node.dataset.at === held)?.focus({ preventScroll: true })
}
