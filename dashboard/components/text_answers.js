// Answers on a whole text: a group of rows for each task, a column for each run. Labels with their probabilities as
// bars, numbers on their scale. Built from text nodes only, so that no text, label or run name is ever read as HTML.

const bdi = (text) => element("bdi", { textContent: text })
const width = (share) => `${100 * Math.min(1, Math.max(0, share))}%`

// What a run answers, in large type, and what is amiss with it.
function verdict(said) {
  if (!said) return element("td", { className: "none", title: "This run does not have the task" }, "–")
  const answer = element("span", { className: said.differs ? "answer differs" : "answer" }, bdi(said.text))
  const why = said.why ? [element("span", { className: "why", textContent: said.why })] : []
  return element("td", { className: "verdict" }, answer, ...why)
}

function bar(said, label) {
  if (!said) return element("td")
  const share = said.shares[label] ?? 0
  return element("td", {}, element("div", { className: said.text === label ? "bar chosen" : "bar" },
    element("span", { className: "track" }, element("i", { style: { width: width(share) } })),
    element("span", { className: "share", textContent: percent(share) })))
}

function scale(said, task) {
  if (!said) return element("td")
  const gold = task.gold_place === null ? [] : [element("b", { title: `gold ${task.gold}`, style: { left: width(task.gold_place) } })]
  return element("td", {}, element("div", { className: "scale" },
    element("span", { className: "end", textContent: task.ends[0] }),
    element("span", { className: "line" }, ...gold, element("i", { title: said.text, style: { left: width(said.place) } })),
    element("span", { className: "end", textContent: task.ends[1] })))
}

function group(task) {
  const name = element("div", { className: "name" }, element("i"), bdi(task.task), element("span", { className: "of", textContent: task.of }))
  const gold = task.gold ? [element("div", { className: "gold" }, "gold ", bdi(task.gold))] : []
  const rows = [element("tr", { className: "task" }, element("th", { scope: "rowgroup" }, name, ...gold), ...task.said.map(verdict))]
  const row = (head, cell) => rows.push(element("tr", {}, element("th", { scope: "row" }, head), ...task.said.map(cell)))
  for (const label of task.labels)
    row(element("span", { className: label === task.gold ? "label right" : "label", title: label }, bdi(label)), (said) => bar(said, label))
  if (task.more) rows.push(element("tr", {}, element("th", { className: "more", textContent: `${task.more} more labels` })))
  if (task.ends.length) row("", (said) => scale(said, task))
  return element("tbody", { style: { "--task": task.colour } }, ...rows)
}

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector("#root")
  const texts = data.texts.map((text, place) => element("blockquote", { dir: "auto" },
    ...(data.texts.length > 1 ? [element("span", { className: "number", textContent: place + 1 })] : []), element("span", { textContent: text })))
  const named = data.runs.some(Boolean)
  const head = named
    ? [element("thead", {}, element("tr", {}, element("td"), ...data.runs.map((run) => element("th", { scope: "col", title: run }, bdi(run)))))]
    : []
  const table = element("table", { style: { "--runs": data.runs.length } }, ...head, ...data.tasks.map(group))
  table.setAttribute("aria-label", "Answers on the whole text")
  const about = data.about ? [element("div", { className: "about", textContent: data.about })] : []
  root.replaceChildren(...texts, ...(data.tasks.length ? [element("div", { className: "scroll" }, table)] : []), ...about)
}
