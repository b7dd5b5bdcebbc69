// The matrix player: a slider over the steps of training, play, hover and saving, all in the browser. The
// server learns, a little later, which step and which pair are looked at. Comes after matrix_picture.js.

const players = new WeakMap()
const REPORT_MS = 250
const REPORT_PLAYING_MS = 1200
const STEPS_A_SECOND = 5
const AROUND = 64 // features shown around a clicked block
const MOST_MEASURES = 500
const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }
const ICONS = { Play: "M8 5v14l11-7z", Pause: "M6 5h4v14H6zM14 5h4v14h-4z" }

const clamp = (value, low, high) => Math.max(low, Math.min(value, high))

class Player {
  constructor(root) {
    this.root = root
    this.wanted = undefined // the step looked at; null follows the newest
    this.position = 0
    this.measured = 0
    this.identity = Math.random().toString(36).slice(2, 8)
    const names = ["bar", "play", "back", "on", "loading", "stage", "whole", "note", "tip", "unseen"]
    for (const name of names) this[`${name}Node`] = root.querySelector(`.${name}`)
    for (const name of ["canvas", "output", "select"]) this[name] = root.querySelector(name)
    this.range = root.querySelector("input")
    this.svg = root.querySelector(".stage > svg")
    this.listen()
    this.come = (event) => event.detail === this.offered?.name && this.adopt()
    document.addEventListener("mrnlab-matrices", this.come)
    this.observer = new ResizeObserver(() => this.frame && this.layOut() && this.show(this.position, null))
    this.observer.observe(this.stageNode)
  }

  listen() {
    this.playNode.onclick = () => (this.timer ? this.pause(true) : this.play())
    this.backNode.onclick = (event) => this.go(this.position - 1, event.timeStamp)
    this.onNode.onclick = (event) => this.go(this.position + 1, event.timeStamp)
    this.range.oninput = (event) => this.go(Number(this.range.value), event.timeStamp)
    this.wholeNode.onclick = () => this.trigger("zoom", { whole: true })
    for (const button of this.root.querySelectorAll(".saves button")) {
      button.onclick = () => this.save(button.value)
    }
    Object.assign(this.stageNode, {
      onpointermove: (event) => this.point(this.hit(event)),
      onpointerleave: () => this.point(null),
      onclick: (event) => this.choose(this.hit(event)),
      onkeydown: (event) => this.key(event),
      onblur: () => this.point(null),
    })
  }

  end() {
    this.pause()
    clearTimeout(this.reporting)
    this.observer.disconnect()
    document.removeEventListener("mrnlab-matrices", this.come)
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
    if (!fed.isWhole && this.wanted !== null && this.wanted < offered.steps.at(-1)) return
    this.fed = fed
    for (const stack of fed.panels) stack.places ??= addresses(stack)
    this.frame = offered
    this.stacks = fed.panels
    this.loadingNode.hidden = true
    this.stageNode.setAttribute("aria-label", `${offered.alt}. Arrow keys move between cells, Enter shows a pair's line.`)
    this.svg.setAttribute("aria-label", offered.alt)
    this.wholeNode.hidden = !offered.zoomed
    this.noteNode.textContent = offered.foot
    this.barNode.hidden = this.last < 1
    this.root.classList.toggle("beside", offered.beside)
    this.range.max = this.last
    this.layOut()
    this.show(this.nearest(), performance.now())
  }

  get steps() {
    return this.frame.steps
  }

  get last() {
    return this.steps.length - 1
  }

  // The position nearest to the wanted step.
  nearest() {
    if (this.wanted === null) return this.last
    const far = this.steps.map((step) => Math.abs(step - this.wanted))
    return far.indexOf(Math.min(...far))
  }

  // ---- drawing

  // Everything but the cells, where it is not what is drawn already; whether it was not.
  layOut() {
    const width = this.stageNode.clientWidth
    if (!width) return false
    const { frame } = this
    const theme = themeOf(this.root, frame.scale)
    const { step, pair, ...lasting } = frame
    const signature = [JSON.stringify(lasting), width, theme.signature].join("\n")
    if (signature === this.drawn) return false
    this.drawn = signature
    this.theme = theme
    this.room = geometry(frame, width, theme)
    this.stageNode.style.height = `${this.room.height}px`
    this.parts = drawFrame(this.svg, frame, this.room, theme, this.identity)
    this.overlay = draw(this.svg, "g", { class: "overlay" })
    this.pointed = null
    return true
  }

  // Draws the step at that position; `since` is when the reader asked for it, for the measure.
  show(position, since) {
    const { frame, room } = this
    if (!room) return
    this.position = clamp(position, 0, this.last)
    const step = this.steps[this.position]
    paint(this.canvas, frame, this.stacks, this.parts, room, this.theme, this.position)
    frame.panels.forEach((panel, index) => {
      const ofPanel = panel.steps[this.position]
      const step = ofPanel === undefined ? "" : `step ${ofPanel.toLocaleString("en")}`
      this.parts[index].subtitle.textContent = [panel.note, step].filter(Boolean).join(", ")
    })
    this.range.value = this.position
    this.backNode.disabled = this.position === 0
    this.onNode.disabled = this.position === this.last
    const words = `Step ${step.toLocaleString("en")}`
    const share = `${Math.round(100 * frame.shares[this.position])}% of training`
    this.output.replaceChildren(words, element("small", "", ` · ${share}`))
    this.range.setAttribute("aria-valuetext", `${words}, ${share}`)
    this.decorate()
    this.root.dataset.step = step
    this.root.dataset.mode = frame.mode
    if (since !== null) this.measure(since)
  }

  // How long from the reader's wish to the picture on the screen: a performance measure named relations-step.
  measure(since) {
    requestAnimationFrame(() => {
      const channel = new MessageChannel()
      channel.port1.onmessage = () => {
        this.measured += 1
        if (this.measured % MOST_MEASURES === 0) performance.clearMeasures("relations-step")
        performance.measure("relations-step", { start: since, end: performance.now() })
      }
      channel.port2.postMessage(null)
    })
  }

  // Marks over the cells: the chosen pair, the cell pointed at.
  decorate() {
    const { frame, room, overlay, pointed } = this
    const { text, accent, page } = this.theme
    overlay.replaceChildren()
    for (const name of this.svg.querySelectorAll("[data-axis]")) {
      const [axis, place] = [name.dataset.axis, Number(name.dataset.place)]
      const far = Math.min(...frame.pair.map((cell) => Math.abs(cell[axis] - place)))
      name.setAttribute("font-weight", far === 0 ? 700 : 400)
      // Where not all fit, the chosen pair's names push out their neighbours.
      name.setAttribute("visibility", far === 0 || (place % room.every === 0 && far >= room.every) ? "visible" : "hidden")
    }
    frame.panels.forEach((_, index) => {
      const origin = room.origin(index)
      const box = (row, column, rows, columns, look) =>
        draw(overlay, "rect", {
          x: origin.x + column * room.cell, y: origin.y + row * room.cell,
          width: columns * room.cell, height: rows * room.cell, fill: "none", "pointer-events": "none", ...look,
        })
      for (const [row, column] of frame.pair) {
        box(row, column, 1, 1, { stroke: page, "stroke-width": 5 })
        box(row, column, 1, 1, { stroke: text, "stroke-width": 2.4 })
      }
      if (pointed) {
        const band = { fill: text, "fill-opacity": 0.07 }
        box(pointed.row, 0, 1, room.wide, band)
        box(0, pointed.column, room.down, 1, band)
        box(pointed.row, pointed.column, 1, 1, { stroke: accent, "stroke-width": 2 })
      }
    })
    this.describe()
  }

  // ---- steps

  go(position, since) {
    if (!this.fed.isWhole) return
    this.show(position, since)
    this.wanted = this.position === this.last ? null : this.steps[this.position]
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
    if (!this.frame) return
    if (this.position === this.last) this.go(0, performance.now())
    this.label("Pause")
    const wait = () => (this.timer = setTimeout(next, 1000 / (STEPS_A_SECOND * Number(this.select.value))))
    const next = () => {
      if (this.position >= this.last) return this.pause(true)
      this.go(this.position + 1, performance.now())
      wait()
    }
    wait()
  }

  pause(reports = false) {
    clearTimeout(this.timer)
    this.timer = null
    this.label("Play")
    if (reports) this.report(0)
  }

  label(word) {
    this.playNode.querySelector("path").setAttribute("d", ICONS[word])
    this.playNode.setAttribute("aria-label", word)
    this.playNode.title = word
  }

  // ---- cells

  hit(event) {
    const { room } = this
    if (!room) return null
    const { left, top } = this.stageNode.getBoundingClientRect()
    for (let panel = 0; panel < this.frame.panels.length; panel += 1) {
      const origin = room.origin(panel)
      const column = Math.floor((event.clientX - left - origin.x) / room.cell)
      const row = Math.floor((event.clientY - top - origin.y) / room.cell)
      if (row >= 0 && row < room.down && column >= 0 && column < room.wide) return { panel, row, column }
    }
    return null
  }

  // A single cell is a pair; a block of features leads to the cells around it.
  choose(cell) {
    if (!cell) return
    const { rows, columns, total } = this.frame
    const { row, column } = cell
    if (rows.block === 1) {
      this.trigger("cell", { row: rows.start + row, column: columns.start + column })
      return
    }
    const around = (axis, place) => {
      const middle = axis.start + Math.round((place + 0.5) * axis.block)
      return clamp(middle - AROUND / 2, 0, total - AROUND)
    }
    this.trigger("zoom", { top: around(rows, row), left: around(columns, column) })
  }

  key(event) {
    if (event.key === "Escape") {
      if (this.pointed) this.point(null)
      else if (this.frame.zoomed) this.trigger("zoom", { whole: true })
    } else if (event.key === "Enter") {
      this.choose(this.pointed)
    } else if (ARROWS[event.key]) {
      const [down, across] = this.pointed ? ARROWS[event.key] : [0, 0]
      const { panel, row, column } = this.pointed ?? { panel: 0, row: 0, column: 0 }
      this.point({
        panel,
        row: clamp(row + down, 0, this.room.down - 1),
        column: clamp(column + across, 0, this.room.wide - 1),
      })
      this.unseenNode.textContent = this.tipNode.textContent
    } else {
      return
    }
    event.preventDefault()
  }

  point(cell) {
    this.pointed = cell
    if (this.room) this.decorate()
  }

  // What stands in the cell pointed at, in every panel.
  describe() {
    const { frame, room, pointed, tipNode: tip } = this
    tip.hidden = !pointed
    if (!pointed) return
    const { panel, row, column } = pointed
    const [first, second] = [frame.rows.names[row], frame.columns.names[column]]
    const list = element("dl")
    const add = (term, text) => list.append(element("dt", "", term), element("dd", "", text))
    const values = this.stacks.map((stack) => valueAt(stack, this.position, row, column))
    const impossible = frame.panels.map((each) => isImpossible(each, row, column))
    frame.panels.forEach((each, index) => {
      const rough = this.stacks[index].bits === 8
      const text = impossible[index] ? "cannot be learned" : (rough ? "≈ " : "") + written(values[index], rough ? 2 : 3)
      add(frame.panels.length > 1 ? each.title : each.scale === "cosine" ? "Cosine" : "Correlation", text)
    })
    if (frame.panels[panel].variances) {
      // Of a part of the features the columns are others than the rows, and only the rows have bars.
      for (const place of new Set(this.stacks[panel].triangle ? [row, column] : [row])) {
        add(`Variance of ${frame.rows.short[place]}`, significant(varianceAt(this.stacks[panel], this.position, place), 3))
      }
    }
    const cannot = impossible.includes(true)
    const verdict = verdictAt(frame.panels[panel], this.stacks[panel], this.position, row, column)
    if (VERDICTS[verdict]) {
      const [low, high] = intervalAt(frame.panels[panel], this.stacks[panel], row, column)
      if (low !== null) add("95% interval of the mean", `${written(low, 3)} to ${written(high, 3)}`)
      add("Verdict", VERDICTS[verdict])
    }
    const isBlock = frame.rows.block > 1
    const untested = verdict === "0" ? frame.untested : ""
    const words = cannot ? frame.cannot : isBlock ? "Mean of a block; click it for the exact values." : untested
    const names = first === second ? first : `${first}  ×  ${second}`
    const labels = new Map([[first, frame.rows.meanings[row]], [second, frame.columns.meanings[column]]])
    const meanings = [...labels].filter(([, meaning]) => meaning).map(([name, meaning]) => element("div", "meaning", `${name}: ${meaning}`))
    tip.replaceChildren(element("div", "names", names), ...meanings, list, element("div", "quiet", words))
    // Right of the cell and below it; on the other side where there is no room.
    const origin = room.origin(panel)
    const beside = (start, size, gap, length, end) => {
      const after = start + size + gap
      return after + length > end ? Math.max(0, start - length - gap) : after
    }
    const left = beside(origin.x + column * room.cell, room.cell, 12, tip.offsetWidth, room.width)
    const top = beside(origin.y + row * room.cell, room.cell, 10, tip.offsetHeight, room.height)
    tip.style.left = `${left}px`
    tip.style.top = `${this.stageNode.offsetTop + top}px`
  }

  // ---- saving

  async save(kind) {
    const { frame, stacks, room, theme, position } = this
    const name = `${frame.filename}-step-${this.steps[this.position]}.${kind}`
    const svg = () => asSVG(this.svg, frame, stacks, room, theme, position)
    const forms = {
      csv: () => new Blob([asCSV(frame, stacks, position)], { type: "text/csv" }),
      svg,
      png: () => asPNG(svg(), room),
    }
    saveAs(await forms[kind](), name)
  }
}

export default function ({ data, parentElement, setTriggerValue }) {
  if (data instanceof Uint8Array) return void feed(data) // in a report
  const root = parentElement.querySelector("#root")
  let player = players.get(parentElement)
  if (!player) {
    player = new Player(root)
    players.set(parentElement, player)
  }
  player.update(data, setTriggerValue)
  return () => {
    player.end()
    players.delete(parentElement)
  }
}
