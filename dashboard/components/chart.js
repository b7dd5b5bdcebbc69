// A Plotly chart that lives on while its data changes: Plotly.react with a uirevision keeps zoom, pan and
// hidden traces over updates, which Streamlit's own chart loses because it mounts anew for each figure.
// Comes after plotly.js.

const charts = new WeakMap()

// Names of rows as large as the cells allow, and none where they could not be read.
function fitNames(layout, width) {
  const rows = layout.meta?.rows
  if (!rows) return {}
  const size = Math.min(13, (0.92 * (width - 90)) / rows)
  const shown = size >= 5.5
  return {
    "xaxis.tickfont.size": Math.max(size, 1),
    "yaxis.tickfont.size": Math.max(size, 1),
    "xaxis.showticklabels": shown,
    "yaxis.showticklabels": shown,
  }
}

export default function (component) {
  const { data, parentElement, setTriggerValue } = component
  let chart = charts.get(parentElement)
  if (!chart) {
    const node = document.createElement("div")
    node.setAttribute("role", "img")
    parentElement.appendChild(node)
    chart = { node, observer: null, drawn: "" }
    charts.set(parentElement, chart)
  }
  chart.trigger = setTriggerValue
  chart.wanted = data.figure
  chart.node.setAttribute("aria-label", data.alt)
  // As high as asked, but a square chart is no higher than it is wide.
  const height = () => (data.square ? Math.min(data.height, chart.node.offsetWidth || data.height) : data.height)
  chart.height = height
  chart.node.style.height = `${height()}px`

  const styles = getComputedStyle(parentElement)
  const signature = [
    data.figure,
    data.revision,
    styles.getPropertyValue("--st-text-color"),
    styles.getPropertyValue("--st-background-color"),
  ].join("\n")

  if (signature !== chart.drawn) {
    chart.drawn = signature
    loadPlotly(data.plotly)
      .then((Plotly) => {
        if (chart.wanted !== data.figure) return
        const figure = resolveColours(JSON.parse(data.figure), styles)
        const layout = dress(figure.layout ?? {}, styles)
        layout.uirevision = data.revision
        layout.autosize = true
        layout.height = height()
        for (const [path, value] of Object.entries(fitNames(layout, chart.node.offsetWidth))) {
          const [axis, ...rest] = path.split(".")
          if (rest.length === 2) layout[axis][rest[0]][rest[1]] = value
          else layout[axis][rest[0]] = value
        }
        const config = {
          displaylogo: false,
          responsive: false,
          displayModeBar: data.still ? false : "hover",
          scrollZoom: false,
          modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
          toImageButtonOptions: { filename: data.filename, scale: 2 },
        }
        return Plotly.react(chart.node, figure.data, layout, config).then(() => {
          if (chart.observer) return
          chart.node.on("plotly_click", (event) => {
            const point = event.points[0]
            chart.trigger("clicked", { x: point.x, y: point.y, curve: point.curveNumber })
          })
          chart.observer = new ResizeObserver(() => {
            if (chart.node.offsetWidth === 0) return
            chart.node.style.height = `${chart.height()}px`
            const width = chart.node.offsetWidth
            Plotly.relayout(chart.node, { height: chart.height(), width, ...fitNames(chart.node.layout, width) })
          })
          chart.observer.observe(chart.node)
        })
      })
      .catch((error) => {
        chart.node.textContent = error.message
      })
  }

  return () => {
    chart.observer?.disconnect()
    if (window.Plotly) window.Plotly.purge(chart.node)
    chart.node.remove()
    charts.delete(parentElement)
  }
}
