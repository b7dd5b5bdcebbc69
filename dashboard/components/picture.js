// Saving and copying pictures and texts, shared by the components.

// An SVG of that width and height as PNG, at twice its size.
async function asPNG(svg, { width, height }) {
  const image = new Image()
  const url = URL.createObjectURL(svg)
  try {
    image.src = url
    await image.decode()
    const canvas = element("canvas", { width: 2 * width, height: 2 * height })
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height)
    return await new Promise((resolve) => canvas.toBlob(resolve, "image/png"))
  } finally {
    URL.revokeObjectURL(url)
  }
}

async function copyText(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text)
  // Browsers have no clipboard for pages that a server sends without https.
  const area = element("textarea", { value: text })
  document.body.append(area)
  area.select()
  const copied = document.execCommand("copy")
  area.remove()
  if (!copied) throw new Error("refused")
}

function saveAs(blob, name) {
  const link = element("a", { href: URL.createObjectURL(blob), download: name })
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 10000)
}
