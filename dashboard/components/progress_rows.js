// What is in progress, a row each. Built from text nodes only, so that no name is ever read as HTML.

export default function ({ data, parentElement, setTriggerValue: tell }) {
  const root = parentElement.querySelector("#root")
  const held = root.getRootNode().activeElement?.dataset?.at
  const rows = data.bars.map(({ name, text, share, run, stops }) => {
    const open = (event) => {
      if (opensApart(event)) return
      event.preventDefault()
      tell("opened", run)
    }
    const label = run === null ? element("b", "name", name) : element("a", { className: "name", href: `run?id=${run}`, onclick: open }, name)
    const track = element("span", { className: "track", role: "progressbar", ariaLabel: name, ariaValueNow: Math.round(100 * share) }, element("i", { style: { width: `${100 * share}%` } }))
    const stop = element("button", { type: "button", ariaLabel: `Stop run ${run}`, title: "Its state is saved; it ends at its next step.", onclick: () => tell("stopped", run) }, "Stop")
    label.dataset.at = `open ${run}`
    stop.dataset.at = `stop ${run}`
    return element("li", "", label, track, element("span", "text", text), ...(stops ? [stop] : []))
  })
  root.replaceChildren(element("ul", { role: "list" }, ...rows))
  if (held) [...root.querySelectorAll("[data-at]")].find((node) => node.dataset.at === held)?.focus({ preventScroll: true })
}
