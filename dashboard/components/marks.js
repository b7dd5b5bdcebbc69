// What the components share: elements, shares in percent, links, a line's sign.

const DASHES = { dot: "2 3.5", dash: "7 4" }

// A node with its class, or with its properties and its style, and with what is in it.
function element(tag, looks = "", ...content) {
  const { style = {}, ...properties } = typeof looks === "string" ? { className: looks } : looks
  const node = Object.assign(document.createElement(tag), properties)
  for (const [name, value] of Object.entries(style)) node.style.setProperty(name, value)
  node.append(...content)
  return node
}

const percent = (share) => {
  const text = (100 * share).toFixed(share > 0.9995 || share < 0.0995 ? 1 : 0)
  return `${text === "100.0" ? "100" : text}%`
}

// Whether a press on a link asks for a tab or window of its own.
const opensApart = (event) => event.ctrlKey || event.metaKey || event.shiftKey

// A short line as in the chart.
function sign(colour, dash) {
  const [svg, line] = ["svg", "path"].map((tag) => document.createElementNS("http://www.w3.org/2000/svg", tag))
  const set = (node, attributes) => Object.entries(attributes).forEach(([name, value]) => node.setAttribute(name, value))
  set(svg, { width: 30, height: 8, "aria-hidden": true })
  set(line, { d: "M0 4h30", stroke: colour, "stroke-width": 2.5, "stroke-dasharray": DASHES[dash] ?? "none" })
  svg.append(line)
  return element("td", "sign", svg)
}

