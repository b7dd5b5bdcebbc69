// A tagged sentence: words in large type, under them a lane for each task and configuration; a click shows those of
// its seeds. Every line is a grid whose columns
// are words, so that a span is one thing over its words and widens them where its label is long. Built from text
// nodes only, so that no token, label or run name is ever read as HTML.

const drawn = new WeakMap()
const SVG = "http://www.w3.org/2000/svg"
const MARGIN = 12 // of a saved picture, in pixels
const NARROW = 560 // on a telephone, letters are smaller
const RIGHT_TO_LEFT =
  /^[^\p{L}]*[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}\p{Script=Adlam}]/u
const UNSURE = 0.8 // a word without a label of which a run is less sure has its confidence written too

function place(node, row, column, rows = 1, columns = 1) {
  node.style.gridRow = `${row} / span ${rows}`
  node.style.gridColumn = `${column} / span ${columns}`
  return node
}

// The spans of a lane between two words: where each begins and ends there, and whether it goes on beyond.
function* spansOf(lane, from, to) {
  for (let at = from; at < to; at++) {
    if (!lane.cells[at].inside) continue
    let start = at
    while (at + 1 < to && !lane.cells[at].end && lane.cells[at + 1].inside) at++
    yield { start, end: at + 1, before: !lane.cells[start].start, after: !lane.cells[at].end }
  }
}

// How sure a lane is of a label: the share of its seeds that agree on it, or the confidence of the one run.
const sureness = (lane, cell) => (lane.seeds ? cell.agreed / lane.seeds : cell.shares ? cell.shares[0][1] : 1)
const agreement = (lane, cell) => (lane.seeds && cell.agreed < lane.seeds && !cell.ghost ? `${cell.agreed} of ${lane.seeds}` : "")
const isOfFew = (lane, cell) => 2 * cell.agreed <= lane.seeds && !cell.ghost
// Written only where seeds have no majority or configurations disagree; elsewhere the card and the line tell.
const counted = (lane, cell) => (!cell.tied && (isOfFew(lane, cell) || cell.in_question) ? agreement(lane, cell) : "")
// Lines get thinner and fills fade, never letters: cubed, for most confidences lie in the upper half.
const fade = (node, sure) => {
  node.style.setProperty("--fade", `${55 + 45 * sure ** 3}%`)
  node.style.setProperty("--line", sure > 0.95 ? "3px" : sure > 0.5 ? "2px" : "1px")
}

// A span is as sure as its least sure word.
function spanNode(lane, span, confidence) {
  const first = lane.cells[span.start]
  const node = element("div", "span")
  const looks = { ghost: first.ghost, few: first.few, differs: first.differs, before: span.before, after: span.after }
  node.classList.add(...Object.keys(looks).filter((name) => looks[name]))
  const sure = Math.min(...lane.cells.slice(span.start, span.end).map((cell) => sureness(lane, cell)))
  fade(node, sure)
  const label = element("div", isOfFew(lane, first) ? "type quiet" : "type", (span.before ? "… " : "") + first.text)
  if (counted(lane, first)) label.append(element("span", "share", counted(lane, first)))
  if (confidence && first.shares && !first.ghost) label.append(element("span", "share", percent(sure)))
  if (first.note) label.append(element("span", "note", first.note))
  node.append(label)
  return node
}

function cellNode(lane, cell, token, { confidence, meanings }) {
  const node = element("div", `cell ${lane.kind}`)
  const sure = sureness(lane, cell)
  const agreed = cell.tied ? cell.votes.map(([label, count]) => `${label} ${count} of ${lane.seeds}`).join(", ") : agreement(lane, cell)
  fade(node, sure)
  if (lane.kind === "plain") {
    const tag = element("div", isOfFew(lane, cell) ? "tag quiet" : "tag", element("span", cell.text ? "text" : "", cell.text || "\u00a0"))
    if (counted(lane, cell)) tag.append(element("span", "share", counted(lane, cell)))
    if (confidence && cell.shares) tag.append(element("span", "share", percent(sure)))
    node.append(tag)
    if (cell.differs) node.classList.add("differs")
  } else if (confidence && cell.shares && !cell.inside && sure < UNSURE) {
    node.classList.add("unsure")
    node.append(element("span", "share", `${cell.title} ${percent(sure)}`))
  }
  if (cell.in_question) node.classList.add("in-question")
  const meaning = meanings[lane.task]?.[cell.title]
  const parts = [token, lane.task, lane.of, lane.who, cell.title, meaning, cell.shares ? percent(sure) : agreed, cell.why]
  node.setAttribute("aria-label", parts.filter(Boolean).join(", "))
  node.setAttribute("role", "button")
  node.tabIndex = -1
  return node
}

// The name of a lane; a long one is cut. That of a lane of several seeds shows and hides theirs.
function whoNode(lane, { isNarrow, commonSeeds }) {
  const node = element("div", { className: `who ${lane.kind}${lane.of ? " seed" : ""}`, title: lane.who })
  if (!lane.seeds) node.append(lane.who)
  else {
    const button = element("button", { type: "button" }, element("span", "configuration", lane.who))
    if (!commonSeeds) button.append(element("span", "count", isNarrow ? ` ×${lane.seeds}` : ` ${lane.seeds} seeds`))
    button.setAttribute("aria-expanded", lane.isOpen)
    button.dataset.seeds = lane.key
    node.append(button)
  }
  if (lane.is_reference) node.append(" ", element("span", "reference", "reference"))
  return node
}

// The words from one to another with their lanes. `widths` are those of the names, once they are known.
function lineNode(block, from, to, widths) {
  const line = element("div", "line")
  line.dir = block.rightToLeft ? "rtl" : "ltr"
  const names = widths ? widths.map((width) => `${width}px`) : ["max-content", "max-content"]
  line.style.gridTemplateColumns = `${names.join(" ")} repeat(${to - from}, minmax(0, max-content))`
  block.tokens.slice(from, to).forEach((token, index) => {
    const inQuestion = block.lanes.some((lane) => lane.cells[from + index].in_question)
    line.append(place(element("div", inQuestion ? "word asked" : "word", element("bdi", "", token)), 1, index + 3))
  })
  if (block.commonSeeds && from === 0) line.append(place(element("div", "seeds", `${block.commonSeeds} seeds`), 1, 2))
  // A line that goes on has no lanes of tasks that mark nothing in it.
  const marked = new Set(block.lanes.filter((lane) => lane.cells.slice(from, to).some((cell) => lane.kind === "plain" || cell.inside)).map((lane) => lane.task))
  const lanes = block.lanes.map((lane, number) => [lane, number]).filter(([lane]) => from === 0 || marked.has(lane.task))
  lanes.forEach(([lane, number], shown) => {
    const row = shown + 2
    const opens = shown === 0 || lanes[shown - 1][0].task !== lane.task
    const parts = []
    if (opens) {
      let rows = 1
      while (lanes[shown + rows]?.[0].task === lane.task) rows++
      const name = element("div", { className: "name", title: lane.task }, element("i"), element("bdi", "", lane.short))
      parts.push(place(element("div", `task ${lane.kind}`, name), row, 1, rows))
    }
    parts.push(place(whoNode(lane, block), row, 2))
    for (let at = from; at < to; at++) {
      const cell = place(cellNode(lane, lane.cells[at], block.tokens[at], block), row, at - from + 3)
      cell.dataset.lane = number
      cell.dataset.word = at
      parts.push(cell)
    }
    if (lane.kind === "spans")
      for (const span of spansOf(lane, from, to))
        parts.push(place(spanNode(lane, span, block.confidence), row, span.start - from + 3, 1, span.end - span.start))
    for (const part of parts) {
      part.style.setProperty("--task", lane.colour)
      if (opens && shown > 0) part.classList.add("opens")
      line.append(part)
    }
  })
  return line
}

// Whether a span of some lane goes on from the word before this one.
const isWithin = (block, at) => block.lanes.some(({ kind, cells }) => kind === "spans" && cells[at].inside && !cells[at].start && cells[at - 1].inside && !cells[at - 1].end)

// Where the lines of each block break: all words of all blocks are laid out once without breaks, and measured. A line
// ends between spans, unless that leaves half of it empty.
function broken(stage, blocks, width) {
  const trials = blocks.map((block) => lineNode(block, 0, block.tokens.length))
  const host = element("div", "measure", ...trials)
  stage.append(host)
  const widest = (selector) => Math.ceil(Math.max(0, ...[...host.querySelectorAll(selector)].map((n) => n.getBoundingClientRect().width)))
  const names = [widest(".task"), widest(".who, .seeds")]
  const lines = trials.map((trial, number) => {
    const room = width - names[0] - names[1]
    const widths = [...trial.querySelectorAll(".word")].map((word) => word.getBoundingClientRect().width)
    const length = (from, to) => widths.slice(from, to).reduce((sum, one) => sum + one, 0)
    const starts = [0]
    let from = 0
    for (let at = 1; at < widths.length; at++) {
      if (length(from, at + 1) <= room) continue
      let start = at
      while (start > from + 1 && isWithin(blocks[number], start)) start--
      from = !isWithin(blocks[number], start) && length(from, start) > room / 2 ? start : at
      starts.push(from)
      at = from
    }
    return starts
  })
  host.remove()
  return { names, lines }
}

// What is known of one word in one lane: its best labels with their probabilities, and what is said of it.
function fillCard(card, block, lane, at) {
  const cell = lane.cells[at]
  card.style.setProperty("--task", lane.colour)
  const whose = [lane.task, lane.of, lane.who].filter(Boolean).join(" · ")
  const choices = cell.votes
    ? cell.votes.map(([label, count]) => [label, count / lane.seeds, `${count} of ${lane.seeds}`])
    : (cell.shares ?? []).map(([label, share]) => [label, share, percent(share)])
  const meanings = block.meanings[lane.task] ?? {}
  const rows = choices.map(([label, share, said]) => {
    const track = element("div", "track", element("i", { style: { width: `${100 * share}%` } }))
    return element("div", "choice", element("bdi", "", label), element("small", "", meanings[label] ?? ""), track, element("span", "", said))
  })
  card.replaceChildren(element("div", "head", element("bdi", "token", block.tokens[at]), element("span", "", whose)), ...rows)
  if (!rows.length && cell.title) card.append(element("div", "said", [cell.title, meanings[cell.title]].filter(Boolean).join(", ")))
  if (cell.why) card.append(element("div", "said why", cell.why))
}

// Pointing, touching and the arrow keys bring up the card. All cells together are one stop of the Tab key.
function interact(stage, blocks) {
  const card = element("div", { className: "card", hidden: true, role: "tooltip" })
  stage.append(card)
  const cells = new Map() // block.lane.word → node
  stage.querySelectorAll(".cell").forEach((cell) => {
    cells.set(`${cell.dataset.block}.${cell.dataset.lane}.${cell.dataset.word}`, cell)
  })
  const first = stage.querySelector(".cell")
  if (first) first.tabIndex = 0
  let shown = null
  const hide = () => {
    shown?.classList.remove("shown")
    shown = null
    card.hidden = true
  }
  const show = (cell) => {
    if (shown === cell) return
    shown?.classList.remove("shown")
    shown = cell
    cell.classList.add("shown")
    const block = blocks[cell.dataset.block]
    fillCard(card, block, block.lanes[cell.dataset.lane], Number(cell.dataset.word))
    card.hidden = false
    const [outer, inner] = [stage.getBoundingClientRect(), cell.getBoundingClientRect()]
    const left = Math.min(inner.left - outer.left, outer.width - card.offsetWidth - 4)
    const below = inner.bottom + card.offsetHeight + 12 < window.innerHeight || inner.top < card.offsetHeight + 80
    card.style.left = `${Math.max(0, left)}px`
    card.style.top = `${below ? inner.bottom - outer.top + 6 : inner.top - outer.top - card.offsetHeight - 6}px`
  }
  const focus = (cell) => {
    stage.querySelectorAll('.cell[tabindex="0"]').forEach((other) => (other.tabIndex = -1))
    cell.tabIndex = 0
    cell.focus()
  }
  const isFocused = (cell) => cell !== null && cell === stage.getRootNode().activeElement
  stage.addEventListener("pointerover", (event) => {
    const cell = event.target.closest(".cell")
    if (cell) show(cell)
    else if (!isFocused(shown)) hide()
  })
  stage.addEventListener("pointerleave", () => !isFocused(shown) && hide())
  stage.addEventListener("click", (event) => {
    const cell = event.target.closest(".cell")
    if (cell) focus(cell)
    else hide()
  })
  stage.addEventListener("focusin", (event) => event.target.classList.contains("cell") && show(event.target))
  stage.addEventListener("focusout", hide)
  stage.addEventListener("keydown", (event) => {
    const cell = event.target.closest(".cell")
    if (!cell) return
    if (event.key === "Escape") return hide()
    const [block, lane, word] = ["block", "lane", "word"].map((name) => Number(cell.dataset[name]))
    const onwards = blocks[block].rightToLeft ? -1 : 1
    const near = {
      ArrowRight: [block, lane, word + onwards],
      ArrowLeft: [block, lane, word - onwards],
      ArrowDown: [block, lane + 1, word],
      ArrowUp: [block, lane - 1, word],
      Home: [block, lane, 0],
      End: [block, lane, blocks[block].tokens.length - 1],
      PageDown: [block + 1, 0, 0],
      PageUp: [block - 1, 0, 0],
    }[event.key]
    const next = near && cells.get(near.join("."))
    if (!next) return
    event.preventDefault()
    focus(next)
  })
}

const sample = (text, look = "tag", line = "3px", ...more) => {
  const tag = element("span", look, element("span", "text", text), ...more)
  tag.style.setProperty("--line", line)
  return tag
}
const SAMPLES = {
  thick: () => sample("NN"),
  thin: () => sample("NN", "tag", "1px"),
  few: () => sample("NN", "tag quiet", "3px", element("span", "share", "2 of 5")),
  split: () => sample("split", "tag quiet"),
  hollow: () => element("span", "span few", element("span", "type quiet", "ORG")),
  tint: () => element("span", "tint"),
  reference: () => element("span", "reference", "reference"),
  outline: () => element("span", "differs", sample("NN")),
  dashed: () => element("span", "span ghost differs", element("span", "type", "ORG")),
}

// What the marks of the lanes mean, each beside a sample that is drawn as they are.
function marksNode(marks) {
  const items = marks.map(([mark, meaning]) => {
    const drawn = SAMPLES[mark]()
    drawn.ariaHidden = true
    return element("li", "", drawn, element("span", "", meaning))
  })
  return element("ul", { className: "marks", ariaLabel: "What the marks mean" }, ...items)
}

// The labels as columns, as a file of them has them; with a line of names where a task has several lanes.
function columnsOf({ tokens, all }) {
  const rows = tokens.map((token, at) => [token, ...all.map((lane) => lane.cells[at].title)])
  if (all.some((lane) => lane.who)) rows.unshift(["word", ...all.map((lane) => [lane.task, lane.who].join(" ").trim())])
  return `${rows.map((row) => row.join("\t")).join("\n")}\n`
}

async function copy(button, text, name) {
  const label = button.textContent
  try {
    await copyText(text)
    button.textContent = "Copied"
    setTimeout(() => (button.textContent = label), 1500)
  } catch {
    saveAs(new Blob([text], { type: "text/plain" }), name) // the browser refused
  }
}

// A sentence as it stands, as SVG: its bars, outlines and texts where the browser has put them.
function asSVG(section) {
  const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true })
  const page = getComputedStyle(section).getPropertyValue("--st-background-color")
  const onPage = (colour, opacity = 1) => {
    for (const [fillStyle, globalAlpha] of [[page, 1], [colour, opacity]]) {
      Object.assign(context, { fillStyle, globalAlpha })
      context.fillRect(0, 0, 1, 1)
    }
    return `rgb(${context.getImageData(0, 0, 1, 1).data.slice(0, 3).join()})`
  }
  const nodes = [...section.querySelectorAll(".line *")].filter((node) => node.offsetWidth)
  const boxes = nodes.map((node) => node.getBoundingClientRect())
  const [left, top] = ["left", "top"].map((edge) => Math.min(...boxes.map((box) => box[edge])) - MARGIN)
  const [right, bottom] = ["right", "bottom"].map((edge) => Math.max(...boxes.map((box) => box[edge])) + MARGIN)
  const size = { width: Math.ceil(right - left), height: Math.ceil(bottom - top) }
  const svg = document.createElementNS(SVG, "svg")
  const draw = (tag, attributes, text = "") => {
    const made = tag === "svg" ? svg : svg.appendChild(document.createElementNS(SVG, tag))
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value)
    made.textContent = text
  }
  draw("svg", { xmlns: SVG, ...size })
  draw("rect", { ...size, fill: page })
  nodes.forEach((node, number) => {
    const style = getComputedStyle(node)
    const place = ({ x, y, width, height }) => ({ x: x - left, y: y - top, width, height })
    const box = { ...place(boxes[number]), rx: 2 }
    const fill = onPage(style.backgroundColor, style.opacity)
    if (fill !== onPage(page)) draw("rect", { ...box, fill })
    for (const side of ["Top", "Bottom"]) {
      const height = parseFloat(style[`border${side}Width`])
      const y = side === "Top" ? box.y : box.y + box.height - height
      if (height) draw("rect", { ...box, y, height, fill: onPage(style[`border${side}Color`]) })
    }
    const dash = style.outlineStyle === "dashed" ? "4 3" : "none"
    if (style.outlineStyle !== "none")
      draw("rect", { ...box, fill: "none", stroke: onPage(style.outlineColor), "stroke-width": 1.5, "stroke-dasharray": dash })
    for (const text of node.childNodes) {
      if (text.nodeType !== Node.TEXT_NODE || !text.data.trim()) continue
      const range = document.createRange()
      range.selectNodeContents(text)
      const { x, y, width } = place(range.getBoundingClientRect())
      context.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`
      const look = Object.fromEntries(["family", "size", "weight", "style"].map((name) => [`font-${name}`, style[`font-${name}`]]))
      // Programs without our font stretch theirs to this length.
      Object.assign(look, { textLength: width, lengthAdjust: "spacingAndGlyphs", fill: onPage(style.color) })
      draw("text", { x, y: y + context.measureText(text.data).fontBoundingBoxAscent, ...look }, text.data)
    }
  })
  return { ...size, blob: new Blob([new XMLSerializer().serializeToString(svg)], { type: "image/svg+xml" }) }
}

// What is said of a sentence, the tasks that found nothing in it, and what can be taken along.
function footNode(block, toggle) {
  const foot = element("div", "foot")
  if (block.about) foot.append(element("span", "", block.about))
  const button = (parent, text, title, act, className = "save") => {
    const made = parent.appendChild(element("button", { type: "button", title, className }, text))
    made.onclick = () => act(made)
    return made
  }
  if (block.absent.length) {
    const short = block.absent.map((task) => block.all.find((lane) => lane.task === task).short)
    const names = `No ${short.join(", no ")}`
    button(foot, names, "Show or hide these lanes", toggle, "").setAttribute("aria-expanded", block.opened)
  }
  if (!block.tools) return foot
  const tools = foot.appendChild(element("span", "tools"))
  const save = async (name, made) => saveAs(name.endsWith("svg") ? made.blob : await asPNG(made.blob, made), name)
  button(tools, "Copy", "Copy the words and their labels as columns", (made) => copy(made, columnsOf(block), "sentence.conll"), "save copy")
  if (block.spans) button(tools, "Copy spans", "Copy the spans with their places in the text, as JSON", (made) => copy(made, block.spans, "spans.json"), "save copy")
  button(tools, "PNG", "Save this sentence as PNG", () => save("sentence.png", asSVG(foot.parentElement)))
  button(tools, "SVG", "Save this sentence as SVG", () => save("sentence.svg", asSVG(foot.parentElement)))
  return foot
}

function draw(root, state) {
  const { data, opened, seeds } = state
  const isNarrow = data.small || root.clientWidth < NARROW
  const blocks = data.blocks.map((block, number) => {
    const tasks = [...new Set(block.lanes.map((lane) => lane.task))]
    const marks = (lane) => lane.kind === "plain" || lane.cells.some((cell) => cell.inside)
    const lanes = block.lanes.map((lane) => {
      const key = JSON.stringify([lane.task, lane.of || lane.who])
      return { ...lane, key, isOpen: seeds.has(key) }
    })
    const counts = new Set(lanes.filter((lane) => !lane.of && lane.who !== "gold").map((lane) => lane.seeds))
    const absent = tasks.filter((task) => !block.lanes.some((lane) => lane.task === task && marks(lane)))
    return {
      ...block, absent, all: lanes.filter((lane) => !lane.of), opened: opened.has(number), confidence: data.confidence, meanings: data.meanings, isNarrow, commonSeeds: counts.size === 1 && [...counts][0], tools: !data.small && lanes.length > 0,
      lanes: lanes.filter((lane) => (opened.has(number) || !absent.includes(lane.task)) && (!lane.of || lane.isOpen)),
      rightToLeft: RIGHT_TO_LEFT.test(block.tokens.join(" ")),
    }
  })
  const stage = element("div", "stage")
  root.replaceChildren(stage, ...(data.marks?.length ? [marksNode(data.marks)] : []))
  root.classList.toggle("small", isNarrow)
  const { names, lines } = broken(stage, blocks, root.clientWidth)
  blocks.forEach((block, number) => {
    const isDisputed = block.lanes.some((lane) => lane.cells.some((cell) => cell.in_question))
    const section = element("section", isDisputed ? "block disputed" : "block")
    section.setAttribute("aria-label", block.tokens.join(" "))
    const starts = lines[number]
    starts.forEach((from, index) => {
      section.append(lineNode(block, from, starts[index + 1] ?? block.tokens.length, names))
    })
    if (block.more) section.append(element("div", "more", block.more))
    const toggle = () => {
      if (!opened.delete(number)) opened.add(number)
      draw(root, state)
      root.querySelectorAll(".block")[number].querySelector(".foot button").focus()
    }
    section.append(footNode(block, toggle))
    section.querySelectorAll(".cell").forEach((cell) => (cell.dataset.block = number))
    stage.append(section)
  })
  stage.querySelectorAll("[data-seeds]").forEach((button) => {
    button.onclick = () => {
      const key = button.dataset.seeds
      if (!seeds.delete(key)) seeds.add(key)
      const at = [...root.querySelectorAll("[data-seeds]")].filter((other) => other.dataset.seeds === key).indexOf(button)
      draw(root, state)
      ;[...root.querySelectorAll("[data-seeds]")].filter((other) => other.dataset.seeds === key)[at].focus()
    }
  })
  interact(stage, blocks)
}

export default function (component) {
  const { data, parentElement } = component
  const root = parentElement.querySelector("#root")
  let state = drawn.get(root)
  if (!state) {
    state = { width: 0, opened: new Set(), seeds: new Set() }
    state.observer = new ResizeObserver(() => {
      if (root.clientWidth === 0 || root.clientWidth === state.width) return
      state.width = root.clientWidth
      draw(root, state)
    })
    state.observer.observe(root)
    drawn.set(root, state)
  }
  // The theme changes nothing here (colours are variables), so the same data are not drawn twice.
  const text = JSON.stringify(data)
  if (state.text !== text) {
    state.data = data
    const tokens = JSON.stringify(data.blocks.map((block) => block.tokens))
    if (state.tokens !== tokens) state.opened.clear()
    state.tokens = tokens
    state.text = text
    state.width = root.clientWidth
    if (state.width) draw(root, state)
  }
  return () => {
    state.observer.disconnect()
    drawn.delete(root)
  }
}
