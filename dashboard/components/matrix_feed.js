// The numbers of a matrix player, as bytes: kept apart from what else the player shows, so that they travel
// once and not with every click. Little-endian: the length of a JSON header (uint32), the header, the numbers.

export default function (component) {
  const { data } = component
  if (!(data instanceof Uint8Array)) return
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength)
  const length = view.getUint32(0, true)
  const header = JSON.parse(new TextDecoder().decode(data.subarray(4, 4 + length)))
  const start = data.byteOffset + 4 + length
  const panels = header.panels.map((panel) => {
    // A copy begins where the type of the numbers wants it to.
    const bytes = data.buffer.slice(start + panel.offset, start + panel.offset + panel.bytes)
    return { ...panel, numbers: panel.bits === 8 ? new Int8Array(bytes) : new Int16Array(bytes) }
  })
  window.mrnlabMatrices ??= new Map()
  window.mrnlabMatrices.set(header.name, { id: header.id, panels })
  document.dispatchEvent(new CustomEvent("mrnlab-matrices", { detail: header.name }))
}
