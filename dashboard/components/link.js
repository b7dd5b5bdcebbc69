// The address is that of this page with all that the reader has chosen, as Streamlit keeps it.

const SAID_MS = 2000

export default function ({ parentElement }) {
  const button = parentElement.querySelector("button")
  const said = button.querySelector(".said")
  const tell = (words) => {
    said.textContent = words
    clearTimeout(button.timer)
    button.timer = setTimeout(() => (said.textContent = "Copy link"), SAID_MS)
  }
  button.onclick = () => copyText(location.href).then(() => tell("Link copied"), () => tell("The browser refused"))
}
