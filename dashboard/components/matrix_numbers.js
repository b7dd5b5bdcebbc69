// The numbers of the matrix player, for which it waits by their name.
// Little-endian: the length of a JSON header (uint32), the header, the numbers (deflated). Of each panel they are those of
// the first step, then what each step adds to the one before it.
async function feed(data) {
  const length = new DataView(data.buffer, data.byteOffset).getUint32(0, true)
  const header = JSON.parse(new TextDecoder().decode(data.subarray(4, 4 + length)))
  const known = (window.mrnlabMatrices ??= new Map())
  if (known.get(header.name)?.id === header.id) return
  known.set(header.name, { id: header.id, panels: null })
  const deflated = new Blob([data.subarray(4 + length)]).stream()
  const body = await new Response(deflated.pipeThrough(new DecompressionStream("deflate"))).arrayBuffer()
  if (known.get(header.name).id !== header.id) return // newer ones have come meanwhile
  const panels = header.panels.map((panel) => {
    // A copy begins where the type of the numbers wants it to.
    const end = panel.offset + panel.bytes
    const numbers = new (panel.bits === 8 ? Int8Array : Int16Array)(body.slice(panel.offset, end))
    for (let at = panel.size; at < numbers.length; at += 1) numbers[at] += numbers[at - panel.size]
    return { ...panel, numbers, spread: new Float32Array(body.slice(end, end + panel.variances)) }
  })
  known.set(header.name, { id: header.id, panels })
  document.dispatchEvent(new CustomEvent("mrnlab-matrices", { detail: header.name }))
}
