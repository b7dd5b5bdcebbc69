// The first stop of the Tab key: a button that moves the focus past the sidebar, to what the page is for.

const ID = "skip-link"

export default function ({ data }) {
  let link = document.getElementById(ID)
  if (!link) {
    link = element("button", { id: ID, type: "button" })
    document.body.prepend(link)
  }
  link.textContent = data.label
  link.onclick = () => {
    const place = data.places.map((selector) => document.querySelector(selector)).find(Boolean)
    if (!place) return
    if (place.tabIndex < 0) place.setAttribute("tabindex", -1)
    place.focus()
    place.scrollIntoView({ block: "center" })
  }
}
