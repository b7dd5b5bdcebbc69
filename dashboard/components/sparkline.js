// One line without axes: a card's dev score over its epochs. Points that are no number are left out.

const WIDTH = 100
const HEIGHT = 30

export default function ({ data, parentElement }) {
  const svg = parentElement.querySelector("svg")
  const known = data.values.map((value, place) => [place, value]).filter(([, value]) => Number.isFinite(value))
  const values = known.map(([, value]) => value)
  const [low, high] = [Math.min(...values), Math.max(...values)]
  const x = (place) => (place / (data.values.length - 1 || 1)) * WIDTH
  const y = (value) => HEIGHT - 3 - ((value - low) / (high - low || 1)) * (HEIGHT - 6)
  const points = known.map(([place, value]) => `${x(place)},${y(value)}`).join(" ")
  svg.querySelector("polyline").setAttribute("points", points)
  svg.setAttribute("aria-label", data.alt)
}
