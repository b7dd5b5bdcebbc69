// The chart library, read once for all charts of a page. Stands in the page itself, after PLOTLY, its address: a page
// that opens with a chart reads it while the page starts.

function loadPlotly() {
  if (window.Plotly) return Promise.resolve(window.Plotly)
  window.mrnlabPlotly ??= new Promise((resolve, reject) => {
    const script = document.createElement("script")
    script.src = new URL(PLOTLY, document.baseURI).href
    script.onload = () => resolve(window.Plotly)
    script.onerror = () => {
      window.mrnlabPlotly = undefined
      reject(new Error("The chart library could not be loaded from this server. Reload the page."))
    }
    document.head.appendChild(script)
  })
  return window.mrnlabPlotly
}
