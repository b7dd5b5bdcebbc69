// How matrices are laid out and drawn: cells on a canvas, everything else (names, hatching, scale) as SVG over
// it. No Plotly: a step must repaint up to four matrices within a frame or two, and impossible cells are hatched in any
// order of the rows (docs/adr/0009-matrix-player.md).

const SVG = "http://www.w3.org/2000/svg"
const MOST_NUMBERS = 12
const GAP = 30
const BELOW = 14 // between rows of panels
const NAME = { few: 13, many: 11 } // size of the rows' names; where not all fit, every n-th is written
const TIGHT = 0.85 // a name's height, of its size
const LARGEST_CELL = 110
const NARROWEST = [[4, 200], [12, 300], [Infinity, 420]] // of panels beside each other, by their rows
const CELL_OF_NUMBER = 34 // no number is written in a smaller cell
const NAN = { 8: -128, 16: -32768 }
const LARGEST = { 8: 127, 16: 32767 }
const HALF = 255 // colours on each side of zero
const CANNOT = "cannot be learned"
const VERDICTS = { 1: "undecided", 2: "related", 3: "opposed", 4: "none that matters", 6: "related as far as by the alignment alone" }
const SMALLEST_SHAPED = 7 // in a smaller cell a decided relation is a dot, whatever its sign
const INSET = 0.2 // of a cell's side: so far the colour of an undecided cell stands from its edges
const SATURATED = 0.99
const FAINT = 0.35 // of its colour: so much an undecided cell has, the rest is the page's
const KEY = { line: 13, gap: 14, swatch: 24, least: 60 } // under a matrix: what its colours mean
const INKS = ["#14181C", "#FFFFFF"] // of marks and numbers: on a light cell, on a dark one

function draw(parent, tag, attributes = {}, text) {
  const made = document.createElementNS(SVG, tag)
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value)
  if (text !== undefined) made.textContent = text
  parent.append(made)
  return made
}

// Widths of text, from one canvas. A font is read anew each time that it is set.
const measure = (() => {
  const context = document.createElement("canvas").getContext("2d")
  let set = ""
  return (text, size, family, weight = 400) => {
    const font = `${weight} ${size}px ${family}`
    if (font !== set) context.font = set = font
    return context.measureText(text).width
  }
})()

// Shortened in the middle, since names of labels and runs differ at both ends.
function fitted(text, width, size, family, weight) {
  let [kept, shown] = [text.length, text]
  while (kept > 1 && measure(shown, size, family, weight) > width) {
    kept -= 1
    shown = `${text.slice(0, Math.ceil(kept / 2))}…${text.slice(text.length - Math.floor(kept / 2))}`
  }
  return shown
}

// ---- colours

const rgb = (() => {
  const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true })
  return (colour) => {
    context.fillStyle = colour
    context.fillRect(0, 0, 1, 1)
    return [...context.getImageData(0, 0, 1, 1).data.slice(0, 3)]
  }
})()

// Relative luminance. On a lighter colour than MIDDLE dark words have more contrast than white ones.
const lightness = (colour) => [0.2126, 0.7152, 0.0722].reduce((sum, weight, i) => sum + weight * (colour[i] / 255) ** 2.2, 0)
const MIDDLE = 0.18

// The theme as the browser has it, and a colour for each of the 511 values from −1 to 1.
function themeOf(element, stops) {
  const styles = getComputedStyle(element)
  const variable = (name) => styles.getPropertyValue(`--st-${name}`).trim()
  const resolve = (colour) => colour.replace(/^var\(--st-([a-z0-9-]+)\)$/, (_, name) => variable(name))
  const theme = { resolve }
  const names = { page: "background", text: "text", muted: "gray", border: "border", accent: "primary" }
  for (const [name, ours] of Object.entries(names)) theme[name] = variable(`${ours}-color`)
  theme.family = variable("font") || "sans-serif"
  theme.ground = rgb(theme.page)
  theme.signature = [theme.page, theme.text, theme.border].join()
  const brightness = lightness(theme.ground) < MIDDLE ? "dark" : "light"
  const chosen = stops[brightness].map(([at, colour]) => [at, rgb(resolve(colour))])
  const table = Array.from({ length: 2 * HALF + 1 }, (_, place) => {
    const at = place / (2 * HALF)
    const upper = Math.max(1, chosen.findIndex(([stop]) => stop >= at))
    const [[low, from], [high, to]] = [chosen[upper - 1], chosen[upper]]
    return from.map((part, i) => Math.round(part + ((to[i] - part) * (at - low)) / (high - low)))
  })
  theme.scale = { ...coloursOf(table), same: coloursOf([rgb(theme.border)]) }
  return theme
}

function coloursOf(table) {
  const packed = Uint32Array.from(table, ([red, green, blue]) => (255 << 24) | (blue << 16) | (green << 8) | red)
  return { table, packed, css: (place) => `rgb(${table[place].join(",")})` }
}

// ---- numbers

// Where each cell's number is among those of one step: all rows, or the upper triangle of a symmetric matrix.
function addresses({ rows, columns, triangle }) {
  return Int32Array.from({ length: rows * columns }, (_, cell) => {
    if (!triangle) return cell
    const [row, column] = [Math.floor(cell / columns), cell % columns]
    const [low, high] = row <= column ? [row, column] : [column, row]
    return low * rows - (low * (low - 1)) / 2 + high - low
  })
}

const startOf = (stack, step) => (stack.steps === 1 ? 0 : step) * stack.size

function storedAt(stack, step, row, column) {
  return stack.numbers[startOf(stack, step) + stack.places[row * stack.columns + column]]
}

// The number in a cell at a step; null where it is none.
function valueAt(stack, step, row, column) {
  const stored = storedAt(stack, step, row, column)
  return stored === NAN[stack.bits] ? null : (stored / LARGEST[stack.bits]) * stack.limit
}

function colourAt(stack, step, row, column) {
  const stored = storedAt(stack, step, row, column)
  return stored === NAN[stack.bits] ? HALF : HALF + Math.round((stored * HALF) / LARGEST[stack.bits])
}

// The variance of a row at a step, over the mean of all rows.
const varianceAt = (stack, step, row) => stack.spread[step * stack.rows + row]

const significant = (value, digits) => String(Number(value.toPrecision(digits)))

function written(value, digits) {
  if (value === null) return "no number"
  const text = Math.abs(value).toFixed(digits)
  return value < 0 && Number(text) !== 0 ? `−${text}` : text
}

// In a cell: what is driven to a limit is written as beyond it.
function inCell(value) {
  if (Math.abs(value) <= SATURATED) return written(value, 2)
  return value < 0 ? `<−${SATURATED}` : `>${SATURATED}`
}

function isImpossible(panel, row, column) {
  return panel.impossible.some(([top, bottom, left, right]) => top <= row && row < bottom && left <= column && column < right)
}

// What the seeds decide of a cell, at the last step alone: a key of VERDICTS, 0 where it is not tested, 5 on the
// diagonal; null where there are no verdicts.
function verdictAt(panel, stack, step, row, column) {
  if (!panel.verdicts || step !== stack.steps - 1) return null
  return panel.verdicts.codes[stack.places[row * stack.columns + column]]
}

// Cells that the seeds do not decide, or that are not tested, are drawn faint and smaller.
const isFaint = (panel, stack, step, row, column) => ["0", "1"].includes(verdictAt(panel, stack, step, row, column))

const hasFaint = ({ verdicts }) => /[01]/.test(verdicts?.codes ?? "")

// The column in which a row meets itself: its correlation is 1, whatever was learned. Blocks of features do not.
const sameColumn = ({ rows, columns }, row) => (rows.block === 1 ? row + rows.start - columns.start : -1)

// The colour of a cell, red, green, blue; grey where a row meets itself.
function groundOf(frame, panel, stack, theme, step, row, column) {
  if (column === sameColumn(frame, row)) return theme.scale.same.table[0]
  const colour = theme.scale.table[colourAt(stack, step, row, column)]
  if (!isFaint(panel, stack, step, row, column)) return colour
  return colour.map((part, i) => Math.round(FAINT * part + (1 - FAINT) * theme.ground[i]))
}

// The 95% interval of a cell that is tested; of one seed there is none.
function intervalAt({ verdicts }, stack, row, column) {
  const place = stack.places[row * stack.columns + column]
  return [verdicts.low[place], verdicts.high[place]].map((thousandths) => thousandths === null ? null : thousandths / 1000)
}

// ---- layout

// The room of one panel: where its cells begin, how large they are, what is written around them.
function geometry(frame, width, theme) {
  const { rows, columns } = frame
  const panels = frame.panels.length
  // As many as have room, in rows of equal length.
  const narrowest = NARROWEST.find(([size]) => frame.rows.names.length <= size)[1]
  const most = clamp(Math.floor((width + GAP) / (narrowest + GAP)), 1, panels)
  const across = Math.ceil(panels / Math.ceil(panels / most))
  const widestPanel = (width - GAP * (across - 1)) / across
  const [down, wide] = [rows.names.length, columns.names.length]
  const few = Math.max(down, wide) <= MOST_NUMBERS
  // A small matrix stays small: matrix, variances and the pair's line are seen together.
  const size = Math.max(down, wide)
  const least = panels === 1 ? clamp(90 * size, 420, 600) : panels === 2 ? 420 : 320
  const side = Math.min(panels === 1 ? 800 : 680, Math.max(least, 44 * size))
  const strip = rows.groups.some(Boolean) ? 9 : 0
  const font = few ? NAME.few : NAME.many
  const { named } = frame
  const widest = (axis) => Math.max(...axis.short.map((name) => measure(name, font, theme.family)))
  const limit = Math.min(widestPanel * 0.25, 150)
  const block = frame.stretches ? 18 : 0
  const around = strip + block + 2
  const left = (named ? Math.min(widest(rows), limit) + 6 : 0) + around
  const hasBars = frame.panels.some((panel) => panel.variances)
  const bars = hasBars ? clamp(widestPanel * (panels === 1 ? 0.22 : 0.14), few ? 108 : 50, few ? 150 : 56) : 0
  const cell = Math.min((widestPanel - left - bars - 2) / wide, side / size, LARGEST_CELL)
  const upright = wide <= 6 && widest(columns) < cell
  const names = named ? (upright ? 18 : Math.min(widest(columns), limit) + 6) : 0
  const top = Math.max(names + around, hasBars ? 34 : 0)
  const each = Math.min(widestPanel, Math.max(left + cell * wide + bars, 300))
  const head = frame.panels.some((panel) => panel.steps.length || panel.note) ? 38 : frame.panels.some((panel) => panel.title) ? 24 : 0
  // The colours of tasks are named beside their blocks, or above.
  const fits = ([start, end, name]) => measure(name, 13, theme.family, 600) <= (end - start) * cell
  const key = rows.legend.length && !(block && rows.stretches.every(fits)) ? 24 : 0
  const scale = Math.max(...frame.panels.map((panel) => scaleOf(panel, frame, each, left, cell * wide, theme.family).height))
  const tall = head + top + cell * down + 10 + scale + BELOW
  const at = (panel) => ({ x: (panel % across) * (each + GAP), y: key + Math.floor(panel / across) * tall })
  return {
    width, key, height: key + Math.ceil(panels / across) * tall,
    each, left, top, cell, head, font, named, upright, strip, block, down, wide, limit, at, bars,
    numbers: few && cell >= CELL_OF_NUMBER,
    every: Math.ceil((TIGHT * font) / cell),
    barRoom: bars - 14 - (few ? 46 : 4), // the length of the longest bar
    origin: (panel) => ({ x: at(panel).x + left, y: at(panel).y + head + top }),
  }
}

// ---- everything but the cells

function drawFrame(svg, frame, room, theme, identity) {
  svg.replaceChildren()
  const size = { width: room.width, height: room.height, viewBox: `0 0 ${room.width} ${room.height}` }
  for (const [name, value] of Object.entries({ ...size, "font-family": theme.family })) svg.setAttribute(name, value)
  const defs = draw(svg, "defs")
  const hatch = draw(defs, "pattern", {
    id: `hatch-${identity}`, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)",
  })
  draw(hatch, "line", { x1: 0, y1: 0, x2: 0, y2: 6, stroke: theme.muted, "stroke-width": 1.6, "stroke-opacity": 0.75 })
  let x = 0
  for (const { name, colour } of room.key ? frame.rows.legend : []) {
    draw(svg, "rect", { x, y: 4, width: 11, height: 11, rx: 2, fill: theme.resolve(colour) })
    draw(svg, "text", { x: x + 16, y: 14, "font-size": 12, fill: theme.text }, name)
    x += 34 + measure(name, 12, theme.family)
  }
  return frame.panels.map((panel, index) => drawPanel(svg, defs, frame, panel, index, room, theme, identity))
}

function drawPanel(svg, defs, frame, panel, index, room, theme, identity) {
  const { x, y } = room.at(index)
  const origin = room.origin(index)
  const [width, height] = [room.cell * room.wide, room.cell * room.down]
  const group = draw(svg, "g")
  if (room.head) {
    const scale = { correlation: "", cosine: "", difference: `own scale, ±${panel.limit}` }[panel.scale]
    const title = fitted(panel.title, room.each - 14 - measure(scale, 12, theme.family), 14, theme.family, 600)
    const head = draw(group, "text", { x, y: y + 14, "font-size": 14, "font-weight": 600, fill: theme.text }, title)
    if (title !== panel.title) draw(head, "title", {}, panel.title)
    const beside = x + measure(title, 14, theme.family, 600) + 10
    draw(group, "text", { x: beside, y: y + 14, "font-size": 12, fill: theme.muted }, scale)
  }
  const subtitle = draw(group, "text", { x, y: y + 30, "font-size": 12, fill: theme.muted })
  drawNames(group, frame.rows, room, theme, origin, true)
  drawNames(group, frame.columns, room, theme, origin, false)
  const lines = (edges) =>
    edges.map((edge) => edge * room.cell).map((at) => `M${origin.x + at} ${origin.y}v${height}M${origin.x} ${origin.y + at}h${width}`)
  const inner = room.numbers ? [...frame.rows.names.keys()].slice(1) : []
  draw(group, "path", { d: lines(inner).join(""), stroke: theme.page, "stroke-width": 2 })
  draw(group, "path", { d: lines(frame.edges).join(""), stroke: theme.muted, "stroke-width": 1, "stroke-opacity": 0.7 })
  if (panel.impossible.length) {
    const boxes = panel.impossible.map(([top, bottom, left, right]) => {
      const [across, down] = [(right - left) * room.cell, (bottom - top) * room.cell]
      return `M${origin.x + left * room.cell} ${origin.y + top * room.cell}h${across}v${down}h${-across}z`
    })
    draw(group, "path", { d: boxes.join(""), fill: `url(#hatch-${identity})`, class: "impossible" })
  }
  draw(group, "rect", { ...origin, width, height, fill: "none", stroke: theme.border })
  const size = Math.min(19, Math.max(11, room.cell / 3.6))
  const texts = Array.from({ length: room.numbers ? room.down * room.wide : 0 }, (_, cell) =>
    draw(group, "text", {
      x: origin.x + ((cell % room.wide) + 0.5) * room.cell,
      y: origin.y + (Math.floor(cell / room.wide) + 0.5) * room.cell,
      "font-size": size, "text-anchor": "middle", "dominant-baseline": "central",
    }),
  )
  // One scale for all panels that have it.
  const isNew = (before) => before.limit !== panel.limit || (!before.impossible.length && panel.impossible.length) || (!hasFaint(before) && hasFaint(panel))
  if (frame.panels.slice(0, index).every(isNew)) {
    drawScale(group, defs, panel, frame, room, theme, { x: origin.x, y: origin.y + height + 10 }, identity, index)
  }
  const marks = INKS.map((colour) => ({
    filled: draw(group, "path", { fill: colour, class: "marks" }),
    drawn: draw(group, "path", { fill: "none", stroke: colour, "stroke-width": 1.6, class: "marks" }),
  }))
  return { subtitle, texts, marks, bars: panel.variances ? drawBars(group, frame, room, theme, origin) : [] }
}

// A bar for the variance of each row, right of the matrix, under an axis with 1, the mean, and the largest variance
// where rows have no numbers and there is room; paint() sets lengths and numbers.
function drawBars(group, frame, room, theme, origin) {
  const x = origin.x + room.cell * room.wide + 12
  const height = room.cell * room.down
  const mean = x + room.barRoom / frame.most_variance
  const small = { "font-size": 11, fill: theme.muted }
  const [long, brief] = ["variance in the prior", "variance"]
  const words = measure(long, 11, theme.family) < room.bars - 12 ? long : brief
  draw(group, "text", { ...small, x, y: origin.y - 20 }, words)
  const [unit, most] = ["1", significant(frame.most_variance, 2)]
  const apart = room.barRoom - (mean - x) - (measure(unit, 11, theme.family) + measure(most, 11, theme.family)) / 2
  for (const [at, text] of [[mean, unit], ...(room.numbers || apart < 6 ? [] : [[x + room.barRoom, most]])]) {
    draw(group, "text", { ...small, x: at, y: origin.y - 6, "text-anchor": "middle", class: "tick" }, text)
  }
  draw(group, "path", { d: `M${x} ${origin.y}v${height}`, stroke: theme.border })
  draw(group, "path", { d: `M${mean} ${origin.y - 3}v${height + 6}`, stroke: theme.muted, "stroke-dasharray": "3 3" })
  return frame.rows.colours.map((colour, row) => {
    const thick = room.numbers ? Math.min(0.4 * room.cell, 26) : 0.8 * room.cell
    const middle = origin.y + (row + 0.5) * room.cell
    const bar = draw(group, "rect", { x, y: middle - thick / 2, height: thick, fill: colour ? theme.resolve(colour) : theme.muted })
    const halo = { stroke: theme.page, "stroke-width": 4, "paint-order": "stroke" } // over the line of the mean
    const look = { "font-size": 12, fill: theme.text, "dominant-baseline": "central", y: middle, ...halo }
    return { x, bar, title: draw(bar, "title"), text: room.numbers ? draw(group, "text", look) : null }
  })
}

function paintBars(bars, stack, frame, room, step) {
  bars.forEach(({ x, bar, title, text }, row) => {
    const value = varianceAt(stack, step, row)
    const length = Number.isFinite(value) ? (room.barRoom * value) / frame.most_variance : 0
    bar.setAttribute("width", length.toFixed(1))
    title.textContent = `${frame.rows.names[row]}: variance ${significant(value, 3)}`
    if (!text) return
    text.setAttribute("x", x + length + 6)
    text.textContent = value < 0.01 ? "< 0.01" : significant(value, 2)
  })
}

// Names beside their cells, a strip in the task's colour between both, and the task's name beside its block.
// Rows are written along y, columns along x: `at` is along the axis, `out` is how far from the cells.
function drawNames(group, axis, room, theme, origin, down) {
  const point = (at, out) => (down ? { x: origin.x - out, y: origin.y + at } : { x: origin.x + at, y: origin.y - out })
  const turned = ({ x, y }) => ({ x, y, transform: `rotate(-90 ${x} ${y})` })
  const near = room.strip + 2
  axis.short.forEach((short, place) => {
    const at = (place + 0.5) * room.cell
    if (room.strip && axis.colours[place]) {
      const [length, thick] = [room.cell, room.strip - 4]
      const size = down ? { width: thick, height: length } : { width: length, height: thick }
      draw(group, "rect", { ...point(at - length / 2, room.strip), ...size, fill: theme.resolve(axis.colours[place]) })
    }
    if (!room.named) return
    const look = { "font-size": room.font, fill: theme.text }
    if (!down && room.upright) Object.assign(look, point(at, near + 4), { "text-anchor": "middle" })
    else if (down) Object.assign(look, point(at, near + 2), { "text-anchor": "end", "dominant-baseline": "central" })
    else Object.assign(look, turned(point(at, near + 2)), { "dominant-baseline": "central" })
    const shown = fitted(short, room.limit, room.font, theme.family)
    const text = draw(group, "text", { ...look, "data-axis": down ? 0 : 1, "data-place": place }, shown)
    const meaning = axis.meanings[place]
    if (shown !== short || meaning) draw(text, "title", {}, [axis.names[place], meaning].filter(Boolean).join(": "))
  })
  if (!room.block) return
  const outer = room.named ? (down ? room.left : room.top) - 12 : room.strip + 10
  for (const [start, end, name] of axis.stretches) {
    if (measure(name, 13, theme.family, 600) > (end - start) * room.cell) continue
    const middle = point(((start + end) / 2) * room.cell, outer)
    const look = { "font-size": 13, "font-weight": 600, fill: theme.text, "text-anchor": "middle" }
    draw(group, "text", { ...look, ...(down ? turned(middle) : middle) }, name)
  }
}

// The colours of a panel, under its cells: how wide, with words beside or below them, and how high with these.
function scaleOf(panel, frame, each, left, cells, family) {
  const words = [panel.scale, ...(hasFaint(panel) ? [frame.faint] : []), ...(panel.impossible.length ? [CANNOT] : [])]
  const beside = each - left - KEY.gap - KEY.swatch - Math.max(...words.map((text) => measure(text, 11, family)))
  const isBeside = beside >= KEY.least
  const lines = isBeside ? Math.max(words.length, hasFaint(panel) ? 3 : 2) : (hasFaint(panel) ? 3 : 2) + words.length - 1
  return { isBeside, width: Math.min(190, isBeside ? beside : cells), height: KEY.line * lines }
}

// Above all colours, below them the squares of cells that are drawn faint, where there are any.
function drawScale(group, defs, panel, frame, room, theme, at, identity, index) {
  const { isBeside, width } = scaleOf(panel, frame, room.each, room.left, room.cell * room.wide, theme.family)
  const id = `scale-${identity}-${index}`
  const gradient = draw(defs, "linearGradient", { id })
  const { css } = theme.scale
  const colour = (share) => css(Math.round(2 * HALF * share))
  for (let part = 0; part <= 16; part += 1) draw(gradient, "stop", { offset: part / 16, "stop-color": colour(part / 16) })
  draw(group, "rect", { ...at, width, height: 8, fill: `url(#${id})`, stroke: theme.border, "stroke-width": 0.7 })
  const small = { "font-size": 11, fill: theme.muted }
  const isFaded = hasFaint(panel)
  if (isFaded) {
    const squares = Math.floor(width / KEY.line)
    for (let square = 0; square < squares; square += 1) {
      const x = at.x + ((square + 0.5) / squares) * width - 4
      draw(group, "rect", { x, y: at.y + KEY.line, width: 8, height: 8, fill: colour((square + 0.5) / squares), "fill-opacity": FAINT })
    }
  }
  const digits = panel.limit === 1 ? 0 : panel.limit >= 0.1 ? 1 : 2
  const ticks = at.y + 8 + KEY.line * (isFaded ? 2 : 1)
  for (const tick of [-1, 0, 1]) {
    const x = at.x + ((tick + 1) / 2) * width
    const anchor = { [-1]: "start", 0: "middle", 1: "end" }[tick]
    draw(group, "text", { ...small, x, y: ticks, "text-anchor": anchor }, written(tick * panel.limit, tick ? digits : 0))
  }
  const x = isBeside ? at.x + width + KEY.gap : at.x
  let y = isBeside ? at.y + 8 : ticks + KEY.line
  const line = (text, indent = 0) => {
    draw(group, "text", { ...small, x: x + indent, y }, text)
    y += KEY.line
  }
  if (isBeside) line(panel.scale)
  if (isFaded) {
    if (!isBeside) draw(group, "rect", { x, y: y - 8, width: 8, height: 8, fill: colour(1), "fill-opacity": FAINT })
    line(frame.faint, isBeside ? 0 : 14)
  }
  if (!panel.impossible.length) return
  draw(group, "rect", { x, y: y - 9, width: 18, height: 10, fill: `url(#hatch-${identity})`, stroke: theme.border })
  line(CANNOT, KEY.swatch)
}

// ---- cells

// Every matrix at a step, as one image each, and the numbers in the cells of small ones.
function paint(canvas, frame, stacks, parts, room, theme, step) {
  const ratio = window.devicePixelRatio || 1
  const [wide, high] = [Math.round(room.width * ratio), Math.round(room.height * ratio)]
  if (canvas.width !== wide || canvas.height !== high) {
    Object.assign(canvas, { width: wide, height: high })
    Object.assign(canvas.style, { width: `${room.width}px`, height: `${room.height}px` })
  }
  const context = canvas.getContext("2d")
  context.setTransform(ratio, 0, 0, ratio, 0, 0)
  context.clearRect(0, 0, room.width + 1, room.height + 1)
  context.imageSmoothingEnabled = false
  frame.panels.forEach((panel, index) => {
    const stack = stacks[index]
    const origin = room.origin(index)
    if (verdictAt(panel, stack, step, 0, 0) === null) {
      const image = pixels(frame, stack, theme, step)
      context.drawImage(image, origin.x, origin.y, room.cell * room.wide, room.cell * room.down)
    } else {
      for (const { x, y, side, colour } of squares(frame, index, stack, room, theme, step)) {
        context.fillStyle = colour
        context.fillRect(x, y, side, side)
      }
    }
    paintBars(parts[index].bars, stack, frame, room, step)
    paintMarks(parts[index].marks, panel, stack, room, theme, step, origin)
    parts[index].texts.forEach((text, place) => {
      const [row, column] = [Math.floor(place / room.wide), place % room.wide]
      const value = valueAt(stack, step, row, column)
      const ink = INKS[lightness(groundOf(frame, panel, stack, theme, step, row, column)) > MIDDLE ? 0 : 1]
      const isSame = column === sameColumn(frame, row)
      text.textContent = isImpossible(panel, row, column) ? "" : value === null ? "–" : isSame ? written(value, 2) : inCell(value)
      text.setAttribute("fill", isSame ? theme.muted : ink)
    })
  })
}

// Marks in decided cells: a dot (related), a ring (as far as by the alignment alone), a cross (opposed), a bar (none that
// matters); with numbers they are in the corner. Dark or white as the cell is light or dark.
function paintMarks(marks, panel, stack, room, theme, step, origin) {
  const paths = marks.map(() => ({ filled: "", drawn: "" }))
  const isSmall = room.cell < SMALLEST_SHAPED
  const size = room.numbers ? 4 : clamp(room.cell * 0.25, 0.9, 4)
  const [across, down] = room.numbers ? [1 - 9 / room.cell, 9 / room.cell] : [0.5, 0.5]
  for (let cell = 0; cell < room.down * room.wide; cell += 1) {
    const [row, column] = [Math.floor(cell / room.wide), cell % room.wide]
    const verdict = verdictAt(panel, stack, step, row, column)
    if (verdict === null || !"2346".includes(verdict) || (isSmall && "46".includes(verdict))) continue
    const { table } = theme.scale
    const path = paths[lightness(table[colourAt(stack, step, row, column)]) > MIDDLE ? 0 : 1]
    const [x, y] = [origin.x + (column + across) * room.cell, origin.y + (row + down) * room.cell]
    const left = (x - size).toFixed(1)
    const slant = `l${2 * size} ${2 * size}m0 ${-2 * size}l${-2 * size} ${2 * size}`
    const circle = `M${left} ${y.toFixed(1)}a${size} ${size} 0 1 0 ${2 * size} 0a${size} ${size} 0 1 0 ${-2 * size} 0z`
    if (verdict === "2" || isSmall) path.filled += circle
    else if (verdict === "6") path.drawn += circle
    else path.drawn += verdict === "3" ? `M${left} ${(y - size).toFixed(1)}${slant}` : `M${left} ${y.toFixed(1)}h${2 * size}`
  }
  marks.forEach((mark, index) => {
    mark.filled.setAttribute("d", paths[index].filled)
    mark.drawn.setAttribute("d", paths[index].drawn)
  })
}

// Where each cell is drawn, how large and in which colour.
function squares(frame, index, stack, room, theme, step) {
  const [origin, panel] = [room.origin(index), frame.panels[index]]
  return Array.from({ length: room.down * room.wide }, (_, cell) => {
    const [row, column] = [Math.floor(cell / room.wide), cell % room.wide]
    const margin = isFaint(panel, stack, step, row, column) ? INSET * room.cell : 0
    return {
      x: origin.x + column * room.cell + margin, y: origin.y + row * room.cell + margin, side: room.cell - 2 * margin,
      colour: `rgb(${groundOf(frame, panel, stack, theme, step, row, column).join(",")})`,
    }
  })
}

// The matrix as an image of a pixel per cell.
function pixels(frame, stack, theme, step) {
  stack.canvas ??= Object.assign(document.createElement("canvas"), { width: stack.columns, height: stack.rows })
  const context = stack.canvas.getContext("2d")
  stack.image ??= context.createImageData(stack.columns, stack.rows)
  const target = new Uint32Array(stack.image.data.buffer)
  const { packed } = theme.scale
  const { numbers, places } = stack
  const [start, most, none] = [startOf(stack, step), LARGEST[stack.bits], NAN[stack.bits]]
  for (let cell = 0; cell < target.length; cell += 1) {
    const stored = numbers[start + places[cell]]
    target[cell] = packed[stored === none ? HALF : HALF + Math.round((stored * HALF) / most)]
  }
  for (let row = 0; row < stack.rows; row += 1) {
    const column = sameColumn(frame, row)
    if (column >= 0 && column < stack.columns) target[row * stack.columns + column] = theme.scale.same.packed[0]
  }
  context.putImageData(stack.image, 0, 0)
  return stack.canvas
}

// ---- saved pictures

// The drawn matrices as SVG text: the picture without its marks, and under it a square for each cell.
function asSVG(svg, frame, stacks, room, theme, step) {
  const copy = svg.cloneNode(true)
  copy.querySelector(".overlay")?.remove()
  copy.setAttribute("xmlns", SVG)
  const cells = draw(copy, "g", { "shape-rendering": "crispEdges" })
  draw(cells, "rect", { width: room.width, height: room.height, fill: theme.page })
  stacks.forEach((stack, index) => {
    for (const { x, y, side, colour } of squares(frame, index, stack, room, theme, step)) {
      draw(cells, "rect", { x: x.toFixed(2), y: y.toFixed(2), width: side.toFixed(2), height: side.toFixed(2), fill: colour })
    }
  })
  copy.prepend(cells)
  return new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" })
}

// The matrices at a step as comma-separated values, each row with its variance, and with the panel before it where
// there are several. Intervals and verdicts are matrices of their own.
function asCSV(frame, stacks, step) {
  const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text)
  const several = frame.panels.length > 1 || frame.panels.some((panel) => panel.verdicts)
  const lines = [[...(several ? ["panel"] : []), frame.mode, ...frame.columns.names, "relative variance"]]
  frame.panels.forEach((panel, index) => {
    frame.rows.names.forEach((name, row) => {
      const values = frame.columns.names.map((_, column) => {
        const value = valueAt(stacks[index], step, row, column)
        return value === null ? "" : String(Number(value.toFixed(4)))
      })
      const variance = panel.variances ? significant(varianceAt(stacks[index], step, row), 4) : ""
      lines.push([...(several ? [panel.title] : []), name, ...values, variance])
    })
    if (!panel.verdicts || step !== stacks[index].steps - 1) return
    const parts = { low: 0, high: 1, verdict: null }
    for (const [part, side] of Object.entries(parts)) {
      frame.rows.names.forEach((name, row) => {
        const cells = frame.columns.names.map((_, column) => {
          const word = VERDICTS[verdictAt(panel, stacks[index], step, row, column)] ?? ""
          return side === null || !word ? word : String(intervalAt(panel, stacks[index], row, column)[side] ?? "")
        })
        lines.push([[panel.title, part].filter(Boolean).join(": "), name, ...cells, ""])
      })
    }
  })
  return `${lines.map((line) => line.map(quoted).join(",")).join("\n")}\n`
}
