// A tagged sentence: words in large type, one lane per task under each word. Built from text nodes only, so
// that no token, label or run name is ever read as HTML.

function element(tag, className, text) {
  const node = document.createElement(tag)
  if (className) node.className = className
  if (text !== undefined) node.textContent = text
  return node
}

function mark(lane, cell) {
  const node = element("div", `mark ${lane.kind}`)
  node.style.setProperty("--task", lane.colour)
  node.title = cell.title
  if (cell.differs) node.classList.add("differs")
  if (lane.kind === "spans") {
    const bar = element("div", "bar")
    if (cell.inside) bar.classList.add("inside")
    if (cell.start) bar.classList.add("start")
    if (cell.end) bar.classList.add("end")
    node.append(bar, element("div", "type", cell.start ? cell.text : "\u00a0"))
  } else {
    node.append(element("div", "tag", cell.text || "\u00a0"))
  }
  return node
}

export default function (component) {
  const { data, parentElement } = component
  const root = parentElement.querySelector("#root")
  root.replaceChildren()
  root.classList.toggle("small", Boolean(data.small))
  for (const block of data.blocks) {
    const section = element("section", "block")
    if (block.title) section.append(element("div", "title", block.title))
    const body = element("div", "body")
    if (block.names) {
      const legend = element("div", "legend")
      legend.append(element("div", "word", "\u00a0"))
      for (const lane of block.lanes) {
        const name = element("div", `name ${lane.kind}`)
        name.style.setProperty("--task", lane.colour)
        name.append(element("i", ""), element("span", "", lane.task))
        legend.append(name)
      }
      body.append(legend)
    }
    const line = element("div", "line")
    block.tokens.forEach((token, index) => {
      const column = element("div", "column")
      column.append(element("div", "word", token))
      for (const lane of block.lanes) column.append(mark(lane, lane.cells[index]))
      line.append(column)
    })
    body.append(line)
    section.append(body)
    root.append(section)
  }
}
