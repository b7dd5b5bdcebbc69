// How matrices are laid out and drawn: cells on a canvas, everything else (names, hatching, scale) as SVG over
// it, which is also what is saved. No Plotly: a step must repaint up to four matrices well within a frame or
// two, and what is impossible is hatched in any order of the rows (docs/adr/0009-matrix-player.md).

const SVG = "http://www.w3.org/2000/svg"
const MOST_NUMBERS = 12
const GAP = 30
const SMALLEST_NAME = 5.5
const LARGEST_CELL = 150
const NO_NUMBER = { 8: -128, 16: -32768 }
const LARGEST = { 8: 127, 16: 32767 }
const HALF = 255 // colours on each side of zero

function draw(parent, tag, attributes = {}, text) {
  const made = document.createElementNS(SVG, tag)
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value)
  if (text !== undefined) made.textContent = text
  parent.append(made)
  return made
}

// Widths of text, from one canvas.
const measure = (() => {
  const context = document.createElement("canvas").getContext("2d")
  return (text, size, family, weight = 400) => {
    context.font = `${weight} ${size}px ${family}`
    return context.measureText(text).width
  }
})()

function fitted(text, width, size, family, weight) {
  if (measure(text, size, family, weight) <= width) return text
  let end = text.length
  while (end > 1 && measure(`${text.slice(0, end)}…`, size, family, weight) > width) end -= 1
  return `${text.slice(0, end)}…`
}

// ---- colours

function rgb(colour) {
  const context = document.createElement("canvas").getContext("2d")
  context.fillStyle = colour
  context.fillRect(0, 0, 1, 1)
  return [...context.getImageData(0, 0, 1, 1).data.slice(0, 3)]
}

const lightness = ([red, green, blue]) => (0.2126 * red + 0.7152 * green + 0.0722 * blue) / 255

// The theme as the browser has it, and a colour for each of the 511 values from −1 to 1 of each scale.
function themeOf(element, scales) {
  const styles = getComputedStyle(element)
  const variable = (name) => styles.getPropertyValue(`--st-${name}`).trim()
  const resolve = (colour) => {
    const match = /^var\(--st-([a-z0-9-]+)\)$/.exec(colour)
    return match ? variable(match[1]) : colour
  }
  const page = rgb(variable("background-color"))
  const dark = lightness(page) < 0.5
  const theme = {
    page: variable("background-color"),
    text: variable("text-color"),
    muted: variable("gray-color"),
    border: variable("border-color"),
    accent: variable("primary-color"),
    family: variable("font") || "sans-serif",
    resolve,
    dark,
    colours: {},
  }
  theme.signature = [theme.page, theme.text, theme.border].join()
  for (const [name, stops] of Object.entries(scales)) {
    const chosen = (dark ? stops.dark : stops.light).map(([at, colour]) => [at, rgb(resolve(colour))])
    const table = []
    for (let place = 0; place <= 2 * HALF; place += 1) {
      const at = place / (2 * HALF)
      const upper = Math.max(1, chosen.findIndex(([stop]) => stop >= at))
      const [[low, from], [high, to]] = [chosen[upper - 1], chosen[upper]]
      table.push(from.map((part, i) => Math.round(part + ((to[i] - part) * (at - low)) / (high - low))))
    }
    theme.colours[name] = {
      table,
      packed: Uint32Array.from(table, ([red, green, blue]) => (255 << 24) | (blue << 16) | (green << 8) | red),
      css: (place) => `rgb(${table[place].join(",")})`,
    }
  }
  return theme
}

// ---- numbers

// Where each cell's number is among those of one step: all rows, or the upper triangle of a symmetric matrix.
function addresses(stack) {
  const { rows, columns, triangle } = stack
  const places = new Int32Array(rows * columns)
  for (let row = 0; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1) {
      const [low, high] = row <= column ? [row, column] : [column, row]
      places[row * columns + column] = triangle ? low * rows - (low * (low - 1)) / 2 + high - low : row * columns + column
    }
  }
  return places
}

const stepOf = (stack, step) => (stack.steps === 1 ? 0 : step)

// The number in a cell at a step; null where it is none.
function valueAt(stack, step, row, column) {
  const stored = stack.numbers[stepOf(stack, step) * stack.size + stack.places[row * stack.columns + column]]
  return stored === NO_NUMBER[stack.bits] ? null : (stored / LARGEST[stack.bits]) * stack.limit
}

function written(value, digits) {
  if (value === null) return "no number"
  const text = Math.abs(value).toFixed(digits)
  return value < 0 && Number(text) !== 0 ? `−${text}` : text
}

// ---- layout

// The room of one panel: where its cells begin, how large they are, what is written around them.
function geometry(frame, width, theme) {
  const panels = frame.panels.length
  const across = panels < 3 ? panels : panels === 3 && width >= 840 ? 3 : panels === 4 && width >= 1560 ? 4 : 2
  const each = Math.min(panels === 1 ? 800 : 680, (width - GAP * (across - 1)) / across)
  const { rows, columns } = frame
  const [down, wide] = [rows.names.length, columns.names.length]
  const groups = rows.groups.some(Boolean)
  const strip = groups ? 9 : 0
  const guess = (each - 70) / wide
  const font = Math.min(down <= MOST_NUMBERS ? 13 : 12, 0.94 * guess)
  const named = frame.named && font >= SMALLEST_NAME
  const widest = (axis) => Math.max(...axis.short.map((name) => measure(name, font, theme.family)))
  const limit = each * 0.28
  const upright = wide <= 6 && Math.max(widest(columns), 1) < guess
  const block = frame.stretches ? 18 : 0
  const left = (named ? Math.min(widest(rows), limit) + 6 : 0) + strip + block + 2
  const top = (named ? (upright ? 18 : Math.min(widest(columns), limit) + 6) : 0) + strip + block + 2
  const cell = Math.min((each - left - 2) / wide, (panels === 1 ? 800 : 680) / down, LARGEST_CELL)
  const head = frame.panels.some((panel) => panel.steps.length) ? 38 : frame.panels.some((panel) => panel.title) ? 24 : 0
  const height = head + top + cell * down + 36
  return {
    across, each, left, top, cell, head, font, named, upright, strip, block, down, wide, limit,
    width,
    key: rows.legend.length ? 24 : 0,
    height: (rows.legend.length ? 24 : 0) + Math.ceil(panels / across) * (height + 14),
    at: (panel) => ({
      x: (panel % across) * (each + GAP),
      y: (rows.legend.length ? 24 : 0) + Math.floor(panel / across) * (height + 14),
    }),
    origin(panel) {
      const { x, y } = this.at(panel)
      return { x: x + left, y: y + head + top }
    },
  }
}

// ---- everything but the cells

function drawFrame(svg, frame, room, theme, identity) {
  svg.replaceChildren()
  svg.setAttribute("width", room.width)
  svg.setAttribute("height", room.height)
  svg.setAttribute("viewBox", `0 0 ${room.width} ${room.height}`)
  svg.setAttribute("font-family", theme.family)
  const defs = draw(svg, "defs")
  const hatch = draw(defs, "pattern", {
    id: `hatch-${identity}`, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)",
  })
  draw(hatch, "line", { x1: 0, y1: 0, x2: 0, y2: 6, stroke: theme.muted, "stroke-width": 1.6, "stroke-opacity": 0.75 })
  let x = 0
  for (const { name, colour } of frame.rows.legend) {
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
  const parts = { texts: [] }
  if (room.head) {
    const own = { correlation: "", difference: `own scale, ±${panel.limit}`, spread: `own scale, to ${panel.limit}` }[panel.scale]
    const title = fitted(panel.title, room.each - 14 - measure(own, 12, theme.family), 14, theme.family, 600)
    const head = draw(group, "text", { x, y: y + 14, "font-size": 14, "font-weight": 600, fill: theme.text }, title)
    if (title !== panel.title) draw(head, "title", {}, panel.title)
    const beside = x + measure(title, 14, theme.family, 600) + 10
    draw(group, "text", { x: beside, y: y + 14, "font-size": 12, fill: theme.muted }, own)
  }
  parts.subtitle = draw(group, "text", { x, y: y + 30, "font-size": 12, fill: theme.muted })
  drawNames(group, frame.rows, room, theme, origin, true)
  drawNames(group, frame.columns, room, theme, origin, false)
  for (const edge of frame.edges) {
    const at = edge * room.cell
    const line = { stroke: theme.muted, "stroke-width": 1, "stroke-opacity": 0.7 }
    draw(group, "line", { x1: origin.x + at, x2: origin.x + at, y1: origin.y, y2: origin.y + height, ...line })
    draw(group, "line", { x1: origin.x, x2: origin.x + width, y1: origin.y + at, y2: origin.y + at, ...line })
  }
  if (panel.impossible.length) {
    const path = panel.impossible.map(([top, bottom, left, right]) => {
      const [px, py] = [origin.x + left * room.cell, origin.y + top * room.cell]
      return `M${px} ${py}h${(right - left) * room.cell}v${(bottom - top) * room.cell}h${(left - right) * room.cell}z`
    })
    draw(group, "path", { d: path.join(""), fill: `url(#hatch-${identity})`, class: "impossible" })
    nameImpossible(group, panel, room, theme, origin)
  }
  draw(group, "rect", { x: origin.x, y: origin.y, width, height, fill: "none", stroke: theme.border })
  if (Math.max(room.down, room.wide) <= MOST_NUMBERS) {
    for (let row = 0; row < room.down; row += 1) {
      for (let column = 0; column < room.wide; column += 1) {
        parts.texts.push(
          draw(group, "text", {
            x: origin.x + (column + 0.5) * room.cell,
            y: origin.y + (row + 0.5) * room.cell,
            "font-size": Math.min(19, Math.max(9, room.cell / 3.6)),
            "text-anchor": "middle",
            "dominant-baseline": "central",
          }),
        )
      }
    }
  }
  drawScale(group, defs, panel, index, room, theme, { x: origin.x, y: origin.y + height + 10 }, identity)
  return parts
}

// Names beside their cells, a strip in the task's colour between both, and the task's name beside its block.
function drawNames(group, axis, room, theme, origin, down) {
  const count = axis.names.length
  const near = room.strip + 2
  for (let place = 0; place < count; place += 1) {
    const at = (place + 0.5) * room.cell
    if (room.strip && axis.colours[place]) {
      const thick = room.strip - 4
      const along = { fill: theme.resolve(axis.colours[place]) }
      if (down) Object.assign(along, { x: origin.x - room.strip, y: origin.y + at - room.cell / 2, width: thick, height: room.cell })
      else Object.assign(along, { x: origin.x + at - room.cell / 2, y: origin.y - room.strip, width: room.cell, height: thick })
      draw(group, "rect", along)
    }
    if (!room.named) continue
    const name = fitted(axis.short[place], room.limit, room.font, theme.family)
    const look = { "font-size": room.font, fill: theme.text }
    if (down) {
      draw(group, "text", { ...look, x: origin.x - near - 2, y: origin.y + at, "text-anchor": "end", "dominant-baseline": "central" }, name)
    } else if (room.upright) {
      draw(group, "text", { ...look, x: origin.x + at, y: origin.y - near - 4, "text-anchor": "middle" }, name)
    } else {
      const [px, py] = [origin.x + at, origin.y - near - 2]
      draw(group, "text", { ...look, x: px, y: py, transform: `rotate(-90 ${px} ${py})`, "dominant-baseline": "central" }, name)
    }
  }
  if (!room.block) return
  const outer = room.named ? (down ? room.left : room.top) - 12 : room.strip + 10
  for (const [start, end, name, colour] of axis.stretches) {
    const space = (end - start) * room.cell
    if (measure(name, 13, theme.family, 600) > space) continue
    const middle = ((start + end) / 2) * room.cell
    const look = { "font-size": 13, "font-weight": 600, fill: colour ? theme.resolve(colour) : theme.text, "text-anchor": "middle" }
    if (down) {
      const [px, py] = [origin.x - outer, origin.y + middle]
      draw(group, "text", { ...look, x: px, y: py, transform: `rotate(-90 ${px} ${py})` }, name)
    } else {
      draw(group, "text", { ...look, x: origin.x + middle, y: origin.y - outer }, name)
    }
  }
}

// The words in the largest hatched block that has room for them.
function nameImpossible(group, panel, room, theme, origin) {
  const words = "cannot be learned"
  const [most] = panel.impossible
    .map(([top, bottom, left, right]) => ({ top, bottom, left, right, area: (bottom - top) * (right - left) }))
    .sort((a, b) => b.area - a.area)
  const [wide, high] = [(most.right - most.left) * room.cell, (most.bottom - most.top) * room.cell]
  const length = measure(words, 12, theme.family) + 12
  if (wide < length || high < 22) return
  const [x, y] = [origin.x + ((most.left + most.right) / 2) * room.cell, origin.y + ((most.top + most.bottom) / 2) * room.cell]
  draw(group, "rect", { x: x - length / 2, y: y - 10, width: length, height: 20, rx: 3, fill: theme.page })
  draw(group, "text", { x, y, "font-size": 12, fill: theme.muted, "text-anchor": "middle", "dominant-baseline": "central" }, words)
}

function drawScale(group, defs, panel, index, room, theme, at, identity) {
  const from = panel.scale === "spread" ? 0 : -1
  const gradient = draw(defs, "linearGradient", { id: `scale-${identity}-${index}` })
  const { css } = theme.colours[panel.scale === "spread" ? "spread" : "correlation"]
  for (let part = 0; part <= 16; part += 1) {
    const value = from + ((1 - from) * part) / 16
    draw(gradient, "stop", { offset: part / 16, "stop-color": css(Math.round(HALF + value * HALF)) })
  }
  const width = Math.min(190, room.each - room.left - 10)
  draw(group, "rect", { x: at.x, y: at.y, width, height: 8, fill: `url(#scale-${identity}-${index})`, stroke: theme.border, "stroke-width": 0.7 })
  const ticks = from ? [-1, 0, 1] : [0, 1]
  const digits = panel.limit >= 0.1 ? 1 : 2
  for (const tick of ticks) {
    const x = at.x + ((tick - from) / (1 - from)) * width
    const anchor = tick === ticks[0] ? "start" : tick === 1 ? "end" : "middle"
    const text = panel.limit === 1 ? written(tick, 0) : written(tick * panel.limit, tick ? digits : 0)
    draw(group, "text", { x, y: at.y + 21, "font-size": 11, fill: theme.muted, "text-anchor": anchor }, text)
  }
  let x = at.x + width + 14
  const space = room.each - room.left - width - 20
  const words = { correlation: "correlation", difference: "difference", spread: "SD" }[panel.scale]
  if (measure(words, 11, theme.family) < space) {
    draw(group, "text", { x, y: at.y + 8, "font-size": 11, fill: theme.muted }, words)
    if (panel.impossible.length && room.cell * room.wide > 320) {
      x += measure(words, 11, theme.family) + 14
      draw(group, "rect", { x, y: at.y - 1, width: 18, height: 10, fill: `url(#hatch-${identity})`, stroke: theme.border })
      draw(group, "text", { x: x + 24, y: at.y + 8, "font-size": 11, fill: theme.muted }, "cannot be learned")
    }
  }
}

// ---- cells

// Every cell of every panel at a step. Small matrices have gaps and numbers, large ones are one image each.
function paint(canvas, frame, stacks, parts, room, theme, step) {
  const ratio = window.devicePixelRatio || 1
  const [wide, high] = [Math.round(room.width * ratio), Math.round(room.height * ratio)]
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide
    canvas.height = high
    canvas.style.width = `${room.width}px`
    canvas.style.height = `${room.height}px`
  }
  const context = canvas.getContext("2d")
  context.setTransform(1, 0, 0, 1, 0, 0)
  context.clearRect(0, 0, wide, high)
  context.imageSmoothingEnabled = false
  context.setTransform(ratio, 0, 0, ratio, 0, 0)
  frame.panels.forEach((panel, index) => {
    const stack = stacks[index]
    const origin = room.origin(index)
    const picture = pixels(stack, panel, theme, step)
    const small = Math.max(room.down, room.wide) <= MOST_NUMBERS
    if (small) {
      for (let row = 0; row < room.down; row += 1) {
        for (let column = 0; column < room.wide; column += 1) {
          context.fillStyle = theme.colours[scaleOf(panel)].css(colourAt(stack, step, row, column))
          context.fillRect(origin.x + column * room.cell + 1, origin.y + row * room.cell + 1, room.cell - 2, room.cell - 2)
        }
      }
      writeNumbers(parts[index].texts, panel, stack, room, theme, step)
    } else {
      context.drawImage(picture, origin.x, origin.y, room.cell * room.wide, room.cell * room.down)
    }
  })
}

const scaleOf = (panel) => (panel.scale === "spread" ? "spread" : "correlation")

function colourAt(stack, step, row, column) {
  const stored = stack.numbers[stepOf(stack, step) * stack.size + stack.places[row * stack.columns + column]]
  return stored === NO_NUMBER[stack.bits] ? HALF : HALF + Math.round((stored * HALF) / LARGEST[stack.bits])
}

// The matrix as an image of a pixel per cell.
function pixels(stack, panel, theme, step) {
  stack.canvas ??= Object.assign(document.createElement("canvas"), { width: stack.columns, height: stack.rows })
  const context = stack.canvas.getContext("2d")
  stack.image ??= context.createImageData(stack.columns, stack.rows)
  const target = new Uint32Array(stack.image.data.buffer)
  const { packed } = theme.colours[scaleOf(panel)]
  const { numbers, places } = stack
  const [start, most, none] = [stepOf(stack, step) * stack.size, LARGEST[stack.bits], NO_NUMBER[stack.bits]]
  for (let cell = 0; cell < target.length; cell += 1) {
    const stored = numbers[start + places[cell]]
    target[cell] = stored === none ? packed[HALF] : packed[HALF + Math.round((stored * HALF) / most)]
  }
  context.putImageData(stack.image, 0, 0)
  return stack.canvas
}

function writeNumbers(texts, panel, stack, room, theme, step) {
  const cannot = (row, column) => panel.impossible.some(([t, b, l, r]) => t <= row && row < b && l <= column && column < r)
  const { table } = theme.colours[scaleOf(panel)]
  texts.forEach((text, place) => {
    const [row, column] = [Math.floor(place / room.wide), place % room.wide]
    const value = valueAt(stack, step, row, column)
    text.textContent = cannot(row, column) ? "" : value === null ? "–" : written(value, 2)
    text.setAttribute("fill", lightness(table[colourAt(stack, step, row, column)]) > 0.5 ? "#14181C" : "#FFFFFF")
  })
}

// ---- saved pictures

// The picture as one SVG file: the frame as it stands, with the cells put under it.
function asSVG(svg, frame, stacks, room, theme, step) {
  const copy = svg.cloneNode(true)
  copy.querySelector(".overlay")?.remove()
  copy.setAttribute("xmlns", SVG)
  const cells = document.createElementNS(SVG, "g")
  draw(cells, "rect", { width: room.width, height: room.height, fill: theme.page })
  frame.panels.forEach((panel, index) => {
    const origin = room.origin(index)
    const stack = stacks[index]
    const gap = Math.max(room.down, room.wide) <= MOST_NUMBERS ? 1 : 0
    if (room.down * room.wide <= 10000) {
      const { css } = theme.colours[scaleOf(panel)]
      for (let row = 0; row < room.down; row += 1) {
        for (let column = 0; column < room.wide; column += 1) {
          draw(cells, "rect", {
            x: +(origin.x + column * room.cell + gap).toFixed(2),
            y: +(origin.y + row * room.cell + gap).toFixed(2),
            width: +(room.cell - 2 * gap).toFixed(2),
            height: +(room.cell - 2 * gap).toFixed(2),
            fill: css(colourAt(stack, step, row, column)),
            "shape-rendering": "crispEdges",
          })
        }
      }
    } else {
      draw(cells, "image", {
        href: pixels(stack, panel, theme, step).toDataURL(),
        x: origin.x, y: origin.y, width: room.cell * room.wide, height: room.cell * room.down,
        style: "image-rendering: pixelated", preserveAspectRatio: "none",
      })
    }
  })
  copy.insertBefore(cells, copy.querySelector("defs").nextSibling)
  return new XMLSerializer().serializeToString(copy)
}

async function asPNG(text, room) {
  const image = new Image()
  const url = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }))
  try {
    image.src = url
    await image.decode()
    const canvas = Object.assign(document.createElement("canvas"), { width: 2 * room.width, height: 2 * room.height })
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height)
    return await new Promise((resolve) => canvas.toBlob(resolve, "image/png"))
  } finally {
    URL.revokeObjectURL(url)
  }
}

// The matrices at a step as comma-separated values, with the panel before each row where there are several.
function asCSV(frame, stacks, step) {
  const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text)
  const several = frame.panels.length > 1
  const lines = [[...(several ? ["panel"] : []), frame.mode, ...frame.columns.names]]
  frame.panels.forEach((panel, index) => {
    frame.rows.names.forEach((name, row) => {
      const values = frame.columns.names.map((_, column) => {
        const value = valueAt(stacks[index], step, row, column)
        return value === null ? "" : String(Number(value.toFixed(4)))
      })
      lines.push([...(several ? [panel.title] : []), name, ...values])
    })
  })
  return `${lines.map((line) => line.map(quoted).join(",")).join("\n")}\n`
}
