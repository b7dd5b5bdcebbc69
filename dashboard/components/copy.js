// A table's texts come with the page: a browser lets a page write to the clipboard only right after a click.

const SAID_MS = 2000

export default function ({ data, parentElement }) {
  const [main, more, menu, said] = ["main", "more", "menu", "said"].map((name) => parentElement.querySelector("." + name))
  const formats = data.formats
  const tell = (words) => {
    said.textContent = words
    main.classList.toggle("done", words.startsWith("Copied"))
    clearTimeout(main.timer)
    main.timer = setTimeout(() => (said.textContent = "Copy", main.classList.remove("done")), SAID_MS)
  }
  const copied = (format) =>
    copyText(format.text).then(() => tell(`Copied ${format.name}`), () => tell("The browser refused"))
  const item = (words, act) => {
    const onclick = () => (menu.hidePopover(), act())
    return element("button", { type: "button", role: "menuitem", onclick }, words)
  }
  main.onclick = () => copied(formats[0])
  main.title = `Copy the table as ${formats[0].name}`
  menu.replaceChildren(
    ...formats.map((format) => item(`Copy ${format.name}`, () => copied(format))),
    ...formats.filter((format) => format.file).map((format) => item(`Save ${format.name}`, () => saveAs(new Blob([format.text]), format.file))),
  )
  more.onclick = () => {
    menu.togglePopover()
    const place = more.getBoundingClientRect()
    menu.style.top = `${Math.min(place.bottom + 4, innerHeight - menu.offsetHeight - 4)}px`
    menu.style.left = `${Math.max(4, place.right - menu.offsetWidth)}px`
  }
}
