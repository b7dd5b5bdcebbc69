// What test_everywhere.py asks of a page: functions of the object `mrnlab`.

(() => {
  const parent = (node) => node.parentElement ?? node.getRootNode().host

  function* everything(root) {
    for (const node of root.querySelectorAll("*")) {
      yield node
      if (node.shadowRoot) yield* everything(node.shadowRoot)
    }
  }

  // What a screen reader calls it.
  function named(node) {
    const by = (node.getAttribute("aria-labelledby") ?? "").split(" ").filter(Boolean)
    const told = [
      node.getAttribute("aria-label"),
      by.map((id) => node.getRootNode().getElementById(id)?.textContent ?? "").join(" "),
      [...(node.labels ?? [])].map((label) => label.textContent).join(" "),
      node.textContent,
      node.title,
      // A grid drawn on a canvas is named by the region around it.
      node.closest("[role=region][aria-label]")?.getAttribute("aria-label"),
    ]
    return told.find((text) => text?.trim())?.trim() ?? ""
  }

  // Of a group that arrow keys move in, the Tab key reaches one.
  const GROUP = "[role=toolbar], [role=radiogroup], [role=tablist], [role=listbox]"
  const reachedBy = (node) => node.closest(GROUP) ?? (node.type === "radio" ? `radio ${node.name}` : node)

  // Not the page itself, which can be scrolled, and not what Streamlit offers over a table pointed at.
  const CONTROL = ":is(a[href], button, input, select, textarea, summary, [tabindex]):not(main, [data-testid=stElementToolbar] *)"
  const controls = () =>
    [...everything(document)].filter(
      (node) => node.matches(CONTROL) && !node.disabled && node.tabIndex >= 0 && node.checkVisibility({ visibilityProperty: true }),
    )

  const told = (node) => `${node.tagName.toLowerCase()} "${named(node).slice(0, 50)}" ${node.outerHTML.slice(0, 120)}`

  function focused() {
    let node = document.activeElement
    while (node?.shadowRoot?.activeElement) node = node.shadowRoot.activeElement
    return node === document.body ? null : node
  }

  function look(node) {
    const parts = []
    for (let at = node, up = 0; at && up < 8; at = parent(at), up += 1) {
      const { outline, boxShadow, borderColor } = getComputedStyle(at) // a ring: a tint alone is hardly seen
      parts.push(outline, boxShadow, borderColor)
    }
    return parts.join("|")
  }

  // What had the focus, and what it looked like then.
  const visited = new Map()

  // Notes what has the focus now; gives whether it had it for the first time.
  function visit() {
    const node = focused()
    if (!node || visited.has(node)) return false
    visited.set(node, look(node))
    return true
  }

  // What looks without the focus as it did with it. A canvas draws its own, and that of the cells within it.
  async function unseen() {
    focused()?.blur()
    await new Promise((done) => setTimeout(done, 200)) // React takes the ring away a moment later
    return [...visited]
      .filter(([node, then]) => node.isConnected && node.matches(CONTROL) && !node.closest("canvas") && look(node) === then)
      .map(([node]) => told(node))
  }

  const parse = (text) => {
    const parts = text.match(/[\d.]+/g).map(Number)
    const scale = text.startsWith("color(") ? 255 : 1
    return [...parts.slice(0, 3).map((one) => scale * one), parts[3] ?? 1]
  }
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3]))
  const light = (rgb) =>
    [0.2126, 0.7152, 0.0722].reduce((sum, weight, i) => {
      const share = rgb[i] / 255
      return sum + weight * (share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4)
    }, 0)

  function contrast(node) {
    const layers = []
    let opacity = 1
    for (let at = node; at; at = parent(at)) {
      const style = getComputedStyle(at)
      layers.push(parse(style.backgroundColor))
      opacity *= Number(style.opacity)
    }
    const below = layers.reduceRight((ground, layer) => over(layer, ground), [255, 255, 255])
    const colour = parse(getComputedStyle(node).color)
    const [low, high] = [light(over([...colour.slice(0, 3), colour[3] * opacity], below)), light(below)].sort((a, b) => a - b)
    return (high + 0.05) / (low + 0.05)
  }

  // Words that stand out too little from what lies behind them (WCAG 2.2, 1.4.3).
  function faint() {
    const found = new Set()
    for (const node of everything(document)) {
      const words = [...node.childNodes].filter((one) => one.nodeType === Node.TEXT_NODE).map((one) => one.textContent.trim()).join("")
      if (!/[\p{L}\p{N}]/u.test(words) || node.closest("svg, style, script, :disabled, [aria-disabled=true], [aria-hidden=true]")) continue
      const style = getComputedStyle(node)
      if (!node.checkVisibility({ opacityProperty: true, visibilityProperty: true }) || !node.offsetWidth || style.backgroundClip === "text") continue
      const size = parseFloat(style.fontSize)
      const isLarge = size >= 24 || (size >= 18.66 && style.fontWeight >= 700)
      const seen = contrast(node)
      if (seen < (isLarge ? 3 : 4.5)) found.add(`${seen.toFixed(2)} to 1: ${words.slice(0, 60)}`)
    }
    return [...found]
  }

  window.mrnlab = {
    faint,
    visit,
    nameless: () => controls().filter((node) => !named(node)).map(told),
    unreached: () => {
      const reached = new Set([...visited.keys()].map(reachedBy))
      return controls().filter((node) => !reached.has(reachedBy(node))).map(told)
    },
    unseen,
  }
})()
