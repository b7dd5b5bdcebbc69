// The first stop of the Tab key on every page: a button that moves the focus past the sidebar, to what the page is for.

document.addEventListener("DOMContentLoaded", () => {
  // The button of Launch, the answer, else the title.
  const PLACES = [".st-key-launch button", "[class*=st-key-answer_]", ".st-key-relations_reading", "h1"]
  const place = () => PLACES.map((selector) => document.querySelector(selector)).find(Boolean)
  const name = () => {
    link.textContent = place()?.matches("button") ? "Skip to the button Launch" : "Skip to the answer"
  }
  const link = Object.assign(document.createElement("button"), { id: "skip-link", type: "button", onfocus: name })
  link.onclick = () => {
    const target = place()
    if (!target) return
    if (target.tabIndex < 0) target.setAttribute("tabindex", -1)
    target.focus()
    target.scrollIntoView({ block: "center" })
  }
  name()
  document.body.prepend(link)
})
