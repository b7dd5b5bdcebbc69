// The numbers of the matrix player, for which it waits by their name.
// Little-endian: the length of a JSON header (uint32), the header, the last step of each panel, which is shown at once, and
// deflated all steps: of each panel the numbers of the first, then what each step adds to the one before it.
async function feed(data) {
  const cut = (start, bytes) => data.buffer.slice(data.byteOffset + start, data.byteOffset + start + bytes)
  const length = new DataView(data.buffer, data.byteOffset).getUint32(0, true)
  const header = JSON.parse(new TextDecoder().decode(data.subarray(4, 4 + length)))
  const known = (window.mrnlabMatrices ??= new Map())
  if (known.get(header.name)?.id === header.id) return
  const kind = ({ bits }) => (bits === 8 ? Int8Array : Int16Array)
  let place = 4 + length
  const panels = header.panels.map((panel) => {
    const [numbers, spread] = [new (kind(panel))(panel.size * panel.steps), new Float32Array(panel.variances / 4)]
    for (const [all, size] of [[numbers, panel.size], [spread, panel.variances && panel.rows]]) {
      const bytes = size * all.BYTES_PER_ELEMENT
      all.set(new all.constructor(cut(place, bytes)), all.length - size)
      place += bytes
    }
    return { ...panel, numbers, spread }
  })
  const fed = { id: header.id, panels, isWhole: false }
  const announce = () => document.dispatchEvent(new CustomEvent("mrnlab-matrices", { detail: header.name }))
  known.set(header.name, fed)
  announce()
  const deflated = new Blob([data.subarray(place)]).stream()
  const body = await new Response(deflated.pipeThrough(new DecompressionStream("deflate"))).arrayBuffer()
  for (const panel of panels) {
    const { numbers, spread, size, offset, bytes, variances } = panel
    numbers.set(new (kind(panel))(body.slice(offset, offset + bytes)))
    for (let at = size; at < numbers.length; at += 1) numbers[at] += numbers[at - size]
    spread.set(new Float32Array(body.slice(offset + bytes, offset + bytes + variances)))
  }
  fed.isWhole = true
  if (known.get(header.name) === fed) announce()
}
