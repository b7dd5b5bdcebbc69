// Draws what stands in the file as data, by the components of the pages. Nothing is told to a server.

const THINGS = JSON.parse(document.getElementById("drawn").textContent)
const dark = matchMedia("(prefers-color-scheme: dark)")
const mounted = new Map()

function bytes(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))
}

function draw(number) {
  const { component, data, numbers } = THINGS[number]
  const place = document.getElementById(`drawn-${number}`)
  if (!mounted.has(number)) {
    const look = document.getElementById(`look-${component}`)
    const parent = look ? place.attachShadow({ mode: "open" }) : place
    if (look) parent.append(look.content.cloneNode(true))
    mounted.set(number, parent)
  }
  const call = (value) => COMPONENTS[component]({ data: value, parentElement: mounted.get(number), setTriggerValue: () => {} })
  call(data)
  if (numbers) call(bytes(numbers))
}

const all = () => THINGS.forEach((_, number) => draw(number))

all()
dark.addEventListener("change", all)

// On paper it is light, and what is folded is open.
let folded = []
addEventListener("beforeprint", () => {
  document.documentElement.classList.add("printing")
  folded = [...document.querySelectorAll("details:not([open])")]
  for (const details of folded) details.open = true
  all()
})
addEventListener("afterprint", () => {
  document.documentElement.classList.remove("printing")
  for (const details of folded) details.open = false
  all()
})
