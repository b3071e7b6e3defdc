! Heat diffusion on a square with the module mpi_f08: ranks form a grid, the exchange is made once as persistent
! requests, and the largest error is found with an operation of the program's own. The first eigenfunction of the
! discrete Laplacian decays by the same factor in each step, so the result is known.
!
!   mpifort heat-f08.f90 -o heat && mpiexec -n 4 ./heat
module largest
  use mpi_f08
  use, intrinsic :: iso_c_binding
  implicit none
contains
  subroutine keep_largest(invec, inoutvec, len, datatype)
    type(c_ptr), value :: invec, inoutvec
    integer :: len
    type(MPI_Datatype) :: datatype
    double precision, pointer :: from(:), to(:)
    if (datatype /= MPI_DOUBLE_PRECISION) call MPI_Abort(MPI_COMM_WORLD, 3)
    call c_f_pointer(invec, from, [len])
    call c_f_pointer(inoutvec, to, [len])
    to = max(from, to)
  end subroutine
end module

program heat
  use mpi_f08
  use largest
  implicit none
  integer, parameter :: n = 127, steps = 200
  double precision, parameter :: pi = 3.14159265358979324d0, rate = 0.2d0
  double precision, allocatable, asynchronous :: old(:,:)
  double precision, allocatable :: new(:,:)
  double precision :: h, factor, worst, mine
  integer :: ranks, me, step, i, j, i1, i2, j1, j2, dims(2), place(2), up, down, west, east
  type(MPI_Comm) :: grid
  type(MPI_Datatype) :: row
  type(MPI_Op) :: op
  type(MPI_Request) :: requests(8)
  type(MPI_Status) :: statuses(8)
  logical :: periods(2)

  call MPI_Init()
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  dims = 0
  call MPI_Dims_create(ranks, 2, dims)
  call MPI_Cart_create(MPI_COMM_WORLD, 2, dims, [.false., .false.], .true., grid)
  call MPI_Comm_rank(grid, me)
  call MPI_Cart_get(grid, 2, dims, periods, place)
  call MPI_Cart_shift(grid, 0, 1, up, down)
  call MPI_Cart_shift(grid, 1, 1, west, east)
  i1 = place(1) * n / dims(1) + 1
  i2 = (place(1) + 1) * n / dims(1)
  j1 = place(2) * n / dims(2) + 1
  j2 = (place(2) + 1) * n / dims(2)

  h = 1d0 / (n + 1)
  allocate (old(i1-1:i2+1, j1-1:j2+1), new(i1-1:i2+1, j1-1:j2+1))
  old = 0
  do j = j1, j2
    do i = i1, i2
      old(i, j) = sin(pi * i * h) * sin(pi * j * h)
    end do
  end do
  new = old
  ! Counts may have 64 bits.
  call MPI_Type_vector(int(j2 - j1 + 1, MPI_COUNT_KIND), 1_MPI_COUNT_KIND, int(i2 - i1 + 3, MPI_COUNT_KIND), &
      MPI_DOUBLE_PRECISION, row)
  call MPI_Type_commit(row)
  call MPI_Recv_init(old(i1-1, j1), 1, row, up, 1, grid, requests(1))
  call MPI_Recv_init(old(i2+1, j1), 1, row, down, 2, grid, requests(2))
  call MPI_Recv_init(old(i1, j1-1), i2-i1+1, MPI_DOUBLE_PRECISION, west, 3, grid, requests(3))
  call MPI_Recv_init(old(i1, j2+1), i2-i1+1, MPI_DOUBLE_PRECISION, east, 4, grid, requests(4))
  call MPI_Send_init(old(i2, j1), 1, row, down, 1, grid, requests(5))
  call MPI_Send_init(old(i1, j1), 1, row, up, 2, grid, requests(6))
  call MPI_Send_init(old(i1, j2), i2-i1+1, MPI_DOUBLE_PRECISION, east, 3, grid, requests(7))
  call MPI_Send_init(old(i1, j1), i2-i1+1, MPI_DOUBLE_PRECISION, west, 4, grid, requests(8))

  do step = 1, steps
    call MPI_Startall(8, requests)
    call MPI_Waitall(8, requests, statuses)
    if (statuses(1)%MPI_SOURCE /= up .or. statuses(4)%MPI_SOURCE /= east) call MPI_Abort(grid, 2)
    do j = j1, j2
      do i = i1, i2
        new(i, j) = old(i, j) + rate * (old(i-1, j) + old(i+1, j) + old(i, j-1) + old(i, j+1) - 4 * old(i, j))
      end do
    end do
    old(i1:i2, j1:j2) = new(i1:i2, j1:j2)
  end do
  do i = 1, 8
    call MPI_Request_free(requests(i))
  end do
  call MPI_Type_free(row)

  factor = (1 - 8 * rate * sin(pi * h / 2)**2)**steps
  mine = 0
  do j = j1, j2
    do i = i1, i2
      mine = max(mine, abs(old(i, j) - factor * sin(pi * i * h) * sin(pi * j * h)))
    end do
  end do
  call MPI_Op_create(keep_largest, .true., op)
  call MPI_Allreduce(mine, worst, 1, MPI_DOUBLE_PRECISION, op, grid)
  call MPI_Op_free(op)
  if (me == 0) print '(a, i0, a, es8.1)', 'heat with mpi_f08: ', ranks, ' ranks, error ', worst
  call MPI_Comm_free(grid)
  call MPI_Finalize()
  if (.not. worst < 1d-12) error stop 'the result is wrong'
end program
