// The matrix player: a slider over the steps of training, play, hover, zoom and saving, all in the browser. The
// server is told, a little later, which step and which pair are looked at. Comes after matrix_picture.js.

const players = new WeakMap()
const REPORT_MS = 250
const REPORT_PLAYING_MS = 1200
const STEPS_A_SECOND = 5
const CLICK_PIXELS = 5
const AROUND = 64 // rows shown around a clicked block
const MOST_MEASURES = 500

const ICONS = {
  play: "M8 5v14l11-7z",
  pause: "M6 5h4v14H6zM14 5h4v14h-4z",
  back: "M15 6l-6 6 6 6z",
  on: "M9 6l6 6-6 6z",
}

function element(tag, className, text) {
  const made = document.createElement(tag)
  if (className) made.className = className
  if (text !== undefined) made.textContent = text
  return made
}

function button(className, label, icon) {
  const made = element("button", className, icon ? undefined : label)
  made.type = "button"
  if (icon) {
    made.setAttribute("aria-label", label)
    made.title = label
    setIcon(made, icon)
  }
  return made
}

function setIcon(holder, icon) {
  const svg = document.createElementNS(SVG, "svg")
  svg.setAttribute("viewBox", "0 0 24 24")
  svg.setAttribute("aria-hidden", "true")
  draw(svg, "path", { d: ICONS[icon] })
  holder.replaceChildren(svg)
}

class Player {
  constructor(root) {
    this.root = root
    this.wanted = undefined // the step looked at; null follows the newest
    this.position = 0
    this.marks = 0
    this.identity = Math.random().toString(36).slice(2, 8)
    this.build()
    this.fed = (event) => event.detail === this.offered?.name && this.adopt()
    document.addEventListener("mrnlab-matrices", this.fed)
    this.observer = new ResizeObserver(() => this.frame && this.redraw())
    this.observer.observe(this.stage)
  }

  end() {
    this.pause()
    clearTimeout(this.reporting)
    this.observer.disconnect()
    document.removeEventListener("mrnlab-matrices", this.fed)
  }

  build() {
    this.bar = element("div", "bar")
    const steps = element("div", "group")
    this.playing = button("icon play", "Play", "play")
    this.back = button("icon", "One step back", "back")
    this.on = button("icon", "One step on", "on")
    steps.append(this.playing, this.back, this.on)
    this.range = element("input")
    this.range.type = "range"
    this.range.min = 0
    this.range.step = 1
    this.range.setAttribute("aria-label", "Training step")
    this.told = element("output")
    this.speed = element("select")
    this.speed.setAttribute("aria-label", "Speed")
    for (const times of [0.5, 1, 2, 4]) {
      const option = element("option", "", `${times}×`)
      option.value = times
      option.selected = times === 1
      this.speed.append(option)
    }
    this.bar.append(steps, this.range, this.told, this.speed)

    this.loading = element("div", "loading", "Reading the matrices …")
    this.stage = element("div", "stage")
    this.stage.tabIndex = 0
    this.stage.setAttribute("role", "application")
    this.canvas = element("canvas")
    this.svg = document.createElementNS(SVG, "svg")
    this.svg.setAttribute("role", "img")
    this.stage.append(this.canvas, this.svg)
    this.tip = element("div", "tip")
    this.tip.hidden = true
    this.spoken = element("div", "unseen")
    this.spoken.setAttribute("aria-live", "polite")

    this.foot = element("div", "foot")
    this.whole = button("", "Whole matrix")
    this.note = element("span")
    const saves = element("span", "saves")
    const copy = button("", "Copy CSV")
    const png = button("", "PNG")
    const svg = button("", "SVG")
    png.title = "Save the picture at this step as PNG"
    svg.title = "Save the picture at this step as SVG"
    copy.title = "Copy the numbers at this step as comma-separated values"
    saves.append(copy, png, svg)
    this.foot.append(this.whole, this.note, saves)
    this.root.append(this.bar, this.loading, this.stage, this.foot, this.tip, this.spoken)

    this.playing.onclick = () => (this.timer ? this.pause(true) : this.play())
    this.back.onclick = (event) => this.go(this.position - 1, event.timeStamp)
    this.on.onclick = (event) => this.go(this.position + 1, event.timeStamp)
    this.range.oninput = (event) => this.go(Number(this.range.value), event.timeStamp)
    this.whole.onclick = () => this.trigger("zoom", { whole: true })
    copy.onclick = () => this.copy(copy)
    png.onclick = () => this.save("png")
    svg.onclick = () => this.save("svg")
    this.stage.onpointermove = (event) => this.hover(event)
    this.stage.onpointerleave = () => this.point(null)
    this.stage.onpointerdown = (event) => this.press(event)
    this.stage.onpointerup = (event) => this.release(event)
    this.stage.onkeydown = (event) => this.key(event)
    this.stage.onblur = () => this.point(null)
  }

  // ---- what the server sends

  update(frame, trigger) {
    this.trigger = trigger
    this.offered = frame
    if (this.wanted === undefined) this.wanted = frame.step
    this.adopt()
  }

  // Frame and numbers come apart; they are shown when both are there and belong together.
  adopt() {
    const { offered } = this
    const fed = window.mrnlabMatrices?.get(offered.name)
    if (fed?.id !== offered.id) return
    for (const stack of fed.panels) stack.places ??= addresses(stack)
    this.frame = offered
    this.stacks = fed.panels
    this.loading.hidden = true
    this.stage.setAttribute("aria-label", `${offered.alt}. Arrow keys move between cells, Enter shows a pair's line.`)
    this.svg.setAttribute("aria-label", offered.alt)
    this.stage.classList.toggle("zooms", offered.zooms)
    this.whole.hidden = !offered.zoomed
    this.note.textContent = offered.foot
    const last = offered.moments.steps.length - 1
    this.bar.hidden = last < 1
    this.range.max = last
    this.range.disabled = !offered.whole
    this.redraw()
    this.show(offered.whole ? this.place() : offered.at, performance.now())
    if (!offered.whole && this.asked !== offered.id) {
      this.asked = offered.id
      requestAnimationFrame(() => setTimeout(() => this.trigger("more", { revision: offered.revision })))
    }
  }

  place() {
    const { steps } = this.frame.moments
    if (this.wanted === null) return steps.length - 1
    return steps.reduce((best, step, at) => (Math.abs(step - this.wanted) < Math.abs(steps[best] - this.wanted) ? at : best), 0)
  }

  // ---- drawing

  redraw() {
    const width = this.stage.clientWidth
    if (!width) return
    const { frame } = this
    const theme = themeOf(this.root, frame.scales)
    const { step, pair, at, whole, revision, ...lasting } = frame
    const signature = [JSON.stringify(lasting), width, theme.signature].join("\n")
    if (signature !== this.drawn) {
      this.drawn = signature
      this.theme = theme
      this.room = geometry(frame, width, theme)
      this.stage.style.height = `${this.room.height}px`
      this.parts = drawFrame(this.svg, frame, this.room, theme, this.identity)
      this.overlay = draw(this.svg, "g", { class: "overlay" })
      this.pointed = null
    }
    this.show(this.position, null)
  }

  // Draws the step at that place; `since` is when the reader asked for it, for the measure.
  show(place, since) {
    const { frame, room } = this
    if (!room) return
    const last = frame.moments.steps.length - 1
    this.position = Math.max(0, Math.min(place, last))
    const step = frame.moments.steps[this.position]
    paint(this.canvas, frame, this.stacks, this.parts, room, this.theme, frame.whole ? this.position : 0)
    frame.panels.forEach((panel, index) => {
      const own = panel.steps[frame.whole ? this.position : 0]
      this.parts[index].subtitle.textContent = own === undefined ? "" : `step ${own.toLocaleString("en")}`
    })
    this.range.value = this.position
    // Until the other steps have come there is nothing to play; what plays already can be paused.
    this.playing.disabled = !frame.whole && !this.timer
    this.back.disabled = !frame.whole || this.position === 0
    this.on.disabled = !frame.whole || this.position === last
    const words = `Step ${step.toLocaleString("en")}`
    const share = frame.whole ? `${Math.round(100 * frame.moments.shares[this.position])}% of training` : "reading the others …"
    this.told.replaceChildren(words, element("small", "", ` · ${share}`))
    this.range.setAttribute("aria-valuetext", `${words}, ${share}`)
    this.decorate()
    this.root.dataset.step = step
    this.root.dataset.mode = frame.mode
    if (since !== null) this.measure(since)
  }

  // How long from the reader's wish to the picture on the screen: a performance measure named relations-step,
  // the last also as data-step-ms.
  measure(since) {
    requestAnimationFrame(() => {
      const channel = new MessageChannel()
      channel.port1.onmessage = () => {
        this.marks += 1
        if (this.marks % MOST_MEASURES === 0) performance.clearMeasures("relations-step")
        const found = performance.measure("relations-step", { start: since, end: performance.now() })
        this.root.dataset.stepMs = found.duration.toFixed(1)
      }
      channel.port2.postMessage(null)
    })
  }

  // Marks over the cells: the chosen pair, the cell pointed at, the rectangle being dragged.
  decorate() {
    const { frame, room, overlay } = this
    overlay.replaceChildren()
    frame.panels.forEach((_, index) => {
      const origin = room.origin(index)
      const box = (row, column, rows, columns, look) =>
        draw(overlay, "rect", {
          x: origin.x + column * room.cell, y: origin.y + row * room.cell,
          width: columns * room.cell, height: rows * room.cell, fill: "none", "pointer-events": "none", ...look,
        })
      for (const [row, column] of frame.pair) box(row, column, 1, 1, { stroke: this.theme.text, "stroke-width": 2 })
      if (this.pointed) {
        const { row, column } = this.pointed
        const band = { fill: this.theme.text, "fill-opacity": 0.07 }
        box(row, 0, 1, room.wide, band)
        box(0, column, room.down, 1, band)
        box(row, column, 1, 1, { stroke: this.theme.accent, "stroke-width": 2 })
      }
      if (this.dragged?.panel === index) {
        const { top, bottom, left, right } = this.dragged
        box(top, left, bottom - top, right - left, { stroke: this.theme.accent, "stroke-width": 2, fill: this.theme.accent, "fill-opacity": 0.15 })
      }
    })
    this.tell()
  }

  // ---- steps

  go(place, since) {
    const { steps } = this.frame.moments
    if (!this.frame.whole) return
    this.show(place, since)
    this.wanted = this.position === steps.length - 1 ? null : steps[this.position]
    this.report(this.timer ? REPORT_PLAYING_MS : REPORT_MS)
  }

  report(wait) {
    // While playing the first wish counts, so that the page follows now and then; else the last one.
    if (this.timer && this.reporting) return
    clearTimeout(this.reporting)
    this.reporting = setTimeout(() => {
      this.reporting = null
      this.trigger("step", { step: this.wanted })
    }, wait)
  }

  play() {
    if (!this.frame?.whole) return
    if (this.position === this.frame.moments.steps.length - 1) this.go(0, performance.now())
    setIcon(this.playing, "pause")
    this.playing.setAttribute("aria-label", "Pause")
    this.playing.title = "Pause"
    const next = () => {
      if (this.position >= this.frame.moments.steps.length - 1) return this.pause(true)
      this.go(this.position + 1, performance.now())
      this.timer = setTimeout(next, 1000 / (STEPS_A_SECOND * Number(this.speed.value)))
    }
    this.timer = setTimeout(next, 1000 / (STEPS_A_SECOND * Number(this.speed.value)))
  }

  pause(tells = false) {
    clearTimeout(this.timer)
    this.timer = null
    setIcon(this.playing, "play")
    this.playing.setAttribute("aria-label", "Play")
    this.playing.title = "Play"
    if (tells) this.report(0)
  }

  // ---- cells

  hit(event) {
    if (!this.room) return null
    const { left, top } = this.stage.getBoundingClientRect()
    const { room } = this
    for (let panel = 0; panel < this.frame.panels.length; panel += 1) {
      const origin = room.origin(panel)
      const column = Math.floor((event.clientX - left - origin.x) / room.cell)
      const row = Math.floor((event.clientY - top - origin.y) / room.cell)
      if (row >= 0 && row < room.down && column >= 0 && column < room.wide) return { panel, row, column }
    }
    return null
  }

  hover(event) {
    if (this.pressed && this.frame.zooms) {
      const end = this.hit(event)
      if (end?.panel === this.pressed.panel && this.far(event)) {
        const { panel, row, column } = this.pressed
        this.dragged = {
          panel,
          top: Math.min(row, end.row), bottom: Math.max(row, end.row) + 1,
          left: Math.min(column, end.column), right: Math.max(column, end.column) + 1,
        }
      }
    }
    this.point(this.hit(event))
  }

  far(event) {
    return Math.hypot(event.clientX - this.pressed.x, event.clientY - this.pressed.y) > CLICK_PIXELS
  }

  press(event) {
    const place = event.button === 0 ? this.hit(event) : null
    this.pressed = place && { ...place, x: event.clientX, y: event.clientY }
  }

  release(event) {
    const { pressed, dragged } = this
    this.pressed = null
    this.dragged = null
    if (!pressed) return
    if (dragged) this.zoom(dragged)
    else if (Math.hypot(event.clientX - pressed.x, event.clientY - pressed.y) <= CLICK_PIXELS) this.choose(pressed)
    this.decorate()
  }

  zoom({ top, bottom, left, right }) {
    const { rows, columns } = this.frame
    const edge = (axis, place) => Math.min(axis.stop, axis.start + place * axis.block)
    this.trigger("zoom", {
      top: edge(rows, top), bottom: edge(rows, bottom), left: edge(columns, left), right: edge(columns, right),
    })
  }

  choose({ row, column }) {
    const { rows, columns, total } = this.frame
    if (rows.block === 1 && columns.block === 1) {
      this.trigger("cell", { row: rows.start + row, column: columns.start + column })
      return
    }
    const around = (axis, place) => {
      const middle = axis.start + Math.round((place + 0.5) * axis.block)
      return Math.max(0, Math.min(middle - AROUND / 2, total - AROUND))
    }
    const [top, left] = [around(rows, row), around(columns, column)]
    this.trigger("zoom", { top, bottom: top + AROUND, left, right: left + AROUND })
  }

  key(event) {
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }
    if (event.key === "Escape") {
      if (this.pointed) this.point(null)
      else if (this.frame.zoomed) this.trigger("zoom", { whole: true })
    } else if (event.key === "Enter" && this.pointed) {
      this.choose(this.pointed)
    } else if (moves[event.key]) {
      const from = this.pointed ?? { panel: 0, row: 0, column: moves[event.key][1] ? -1 : 0 }
      const [down, across] = this.pointed ? moves[event.key] : [0, 1]
      const within = (place, size) => Math.max(0, Math.min(place, size - 1))
      this.point({
        panel: from.panel,
        row: within(from.row + down, this.room.down),
        column: within(from.column + across, this.room.wide),
      })
      this.spoken.textContent = this.tip.textContent
    } else {
      return
    }
    event.preventDefault()
  }

  point(place) {
    this.pointed = place
    if (this.room) this.decorate()
  }

  // What stands in the cell pointed at, in every panel.
  tell() {
    this.tip.hidden = !this.pointed
    if (!this.pointed) return
    const { frame, room } = this
    const { panel, row, column } = this.pointed
    const names = [frame.rows.names[row], frame.columns.names[column]]
    const list = element("dl")
    const at = frame.whole ? this.position : 0
    const values = frame.panels.map((_, index) => valueAt(this.stacks[index], at, row, column))
    let cannot = false
    frame.panels.forEach((one, index) => {
      const here = one.impossible.some(([t, b, l, r]) => t <= row && row < b && l <= column && column < r)
      cannot ||= here
      const rough = this.stacks[index].bits === 8
      const text = here ? "cannot be learned" : written(values[index], rough ? 2 : 3)
      list.append(element("dt", "", one.title || "Correlation"), element("dd", "", rough && !here ? `≈ ${text}` : text))
    })
    if (frame.interval !== null && frame.panels[1]?.scale === "spread" && row !== column && !cannot) {
      const half = frame.interval * values[1]
      const text = `${written(Math.max(-1, values[0] - half), 3)} to ${written(Math.min(1, values[0] + half), 3)}`
      list.append(element("dt", "", "95% interval of the mean"), element("dd", "", text))
    }
    const blocks = frame.rows.block * frame.columns.block
    const words = cannot ? frame.cannot : blocks > 1 ? "Mean of a block; click it for the exact values." : ""
    this.tip.replaceChildren(element("div", "names", names[0] === names[1] ? names[0] : names.join("  ×  ")), list, element("div", "quiet", words))
    const origin = room.origin(panel)
    const [x, y] = [origin.x + (column + 1) * room.cell + 12, origin.y + (row + 1) * room.cell + 10]
    const [tall, across] = [this.tip.offsetHeight, this.tip.offsetWidth]
    const left = x + across > room.width ? Math.max(0, origin.x + column * room.cell - across - 12) : x
    const top = y + tall > room.height ? Math.max(0, origin.y + row * room.cell - tall - 10) : y
    this.tip.style.left = `${left}px`
    this.tip.style.top = `${this.stage.offsetTop + top}px`
  }

  // ---- saving

  async copy(pressed) {
    const text = asCSV(this.frame, this.stacks, this.frame.whole ? this.position : 0)
    if (navigator.clipboard) {
      await navigator.clipboard.writeText(text)
    } else {
      // Without https the browser has no clipboard but this.
      const field = element("textarea")
      field.value = text
      this.root.append(field)
      field.select()
      document.execCommand("copy")
      field.remove()
    }
    const before = pressed.textContent
    pressed.textContent = "Copied"
    this.spoken.textContent = "Copied"
    setTimeout(() => (pressed.textContent = before), 1500)
  }

  async save(kind) {
    const { frame, room } = this
    const text = asSVG(this.svg, frame, this.stacks, room, this.theme, frame.whole ? this.position : 0)
    const blob = kind === "svg" ? new Blob([text], { type: "image/svg+xml" }) : await asPNG(text, room)
    const link = element("a")
    link.href = URL.createObjectURL(blob)
    link.download = `${frame.filename}-step-${frame.moments.steps[this.position]}.${kind}`
    link.click()
    setTimeout(() => URL.revokeObjectURL(link.href), 10000)
  }
}

export default function (component) {
  const { data, parentElement, setTriggerValue } = component
  let player = players.get(parentElement)
  if (!player) {
    player = new Player(parentElement.querySelector("#root"))
    players.set(parentElement, player)
  }
  player.update(data, setTriggerValue)
  return () => {
    player.end()
    players.delete(parentElement)
  }
}
