// What a chart's tooltip and its legend share: elements, and a line's sign.

const DASHES = { dot: "2 3.5", dash: "7 4" }

function element(tag, className, ...children) {
  const node = document.createElement(tag)
  node.className = className
  node.append(...children)
  return node
}

// A short line as in the chart.
function sign(colour, dash) {
  const [svg, line] = ["svg", "path"].map((tag) => document.createElementNS("http://www.w3.org/2000/svg", tag))
  const set = (node, attributes) => Object.entries(attributes).forEach(([name, value]) => node.setAttribute(name, value))
  set(svg, { width: 30, height: 8, "aria-hidden": true })
  set(line, { d: "M0 4h30", stroke: colour, "stroke-width": 2.5, "stroke-dasharray": DASHES[dash] ?? "none" })
  svg.append(line)
  return element("td", "sign", svg)
}

