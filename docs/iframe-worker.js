// Run the search of the site when a page is opened as a local file.
//
// Browsers start no workers for file:// pages. There, a worker becomes a hidden frame that runs the
// same script: it gets messages as events, and its postMessage calls the page.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      frame.srcdoc = "<!doctype html>"
      this.started = new Promise(resolve => {
        frame.onload = () => resolve(this.run(url, frame.contentWindow))
      })
      document.documentElement.append(frame)
    }

    run(url, inside) {
      inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      const script = inside.document.createElement("script")
      script.src = new URL(url, location.href)
      return new Promise(resolve => {
        script.onload = () => resolve(inside)
        inside.document.body.append(script)
      })
    }

    async postMessage(data) {
      const inside = await this.started
      inside.dispatchEvent(new inside.MessageEvent("message", { data }))
    }
  }
}
