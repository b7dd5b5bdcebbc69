// What every component with a Plotly figure begins with: the library itself, and the theme's colours.
// Colours given as "var(--st-…)" are resolved here, so a figure follows the light and the dark theme.

// One promise for all components of the page, so that the library is loaded once.
function loadPlotly(url) {
  if (window.Plotly) return Promise.resolve(window.Plotly)
  window.mrnlabPlotly ??= new Promise((resolve, reject) => {
    const script = document.createElement("script")
    script.src = new URL(url, document.baseURI).href
    script.onload = () => resolve(window.Plotly)
    script.onerror = () => {
      window.mrnlabPlotly = undefined
      reject(new Error("The chart library could not be loaded from this server. Reload the page."))
    }
    document.head.appendChild(script)
  })
  return window.mrnlabPlotly
}

function resolveColours(value, styles) {
  if (typeof value === "string") {
    const match = /^var\((--st-[a-z0-9-]+)\)$/.exec(value)
    return match ? styles.getPropertyValue(match[1]).trim() : value
  }
  if (Array.isArray(value)) return value.map((item) => resolveColours(item, styles))
  if (value && typeof value === "object") {
    if ("bdata" in value) return value
    return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, resolveColours(v, styles)]))
  }
  return value
}

function dress(layout, styles) {
  const text = styles.getPropertyValue("--st-text-color").trim()
  const grid = styles.getPropertyValue("--st-border-color").trim()
  const page = styles.getPropertyValue("--st-background-color").trim()
  layout.paper_bgcolor = "rgba(0,0,0,0)"
  layout.plot_bgcolor = layout.plot_bgcolor ?? "rgba(0,0,0,0)"
  layout.font = { color: text, family: styles.getPropertyValue("--st-font"), size: 12, ...layout.font }
  layout.hoverlabel = { bgcolor: page, bordercolor: grid, font: { color: text, size: 12 }, ...layout.hoverlabel }
  layout.modebar = { bgcolor: "rgba(0,0,0,0)", color: grid, activecolor: text, ...layout.modebar }
  for (const name of Object.keys(layout)) {
    if (!/^[xy]axis\d*$/.test(name)) continue
    layout[name] = { gridcolor: grid, linecolor: grid, tickcolor: grid, zeroline: false, ...layout[name] }
  }
  return layout
}

