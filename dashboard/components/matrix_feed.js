// The numbers of the matrix player: in a component of their own they travel once, and not with every click.

export default ({ data }) => {
  if (data) feed(data) // there is none while the page is drawn anew
}
